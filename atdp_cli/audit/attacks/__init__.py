"""Attacks on a model that look for canaries."""
