"""Replacing sensitive spans: placeholders and decoys."""
