"""`atdp account`."""
