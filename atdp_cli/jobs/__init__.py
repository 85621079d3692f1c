"""Whole jobs as library functions."""
