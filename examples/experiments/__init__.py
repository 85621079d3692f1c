"""Many systems over one corpus: the paper's table, ablations and sweeps."""
