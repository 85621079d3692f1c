"""Attacks on a model that look for canaries: extraction, membership inference, relearning. Private."""
