"""`atdp harden`."""
