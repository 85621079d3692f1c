"""Canaries, their exact rank over the whole pool, and the verdict."""
