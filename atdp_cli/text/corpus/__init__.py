"""Corpora: from files to records, and back with edited texts."""
