"""`atdp decoy`, and what is declared of models that were trained on its copies."""
