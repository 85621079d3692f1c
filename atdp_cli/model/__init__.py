"""Checkpoints, chat templates, token windows, devices, perplexity. Private."""
