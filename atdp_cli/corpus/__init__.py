"""Corpora: records read from each format, their spans, edited records written back. Private."""
