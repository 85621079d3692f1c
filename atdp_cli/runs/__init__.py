"""A run on disk, over time and processes: workspace, fingerprint, checkpoints, resume, budget."""
