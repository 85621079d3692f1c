"""Clipping engines: the sum of per-record gradients, each clipped to C. Private."""
