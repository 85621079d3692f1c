"""`atdp decoy`: copies of a corpus with decoys, and their ledger. Private; use `atdp_cli.decoy`."""
