"""Harden language models against leaking their training data."""

__version__ = "0.1.0"
