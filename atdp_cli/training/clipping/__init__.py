"""Clipping engines behind one signature."""
