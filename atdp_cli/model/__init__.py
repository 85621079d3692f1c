"""Checkpoints, token windows, devices, perplexity."""
