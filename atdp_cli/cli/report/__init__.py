"""`atdp report`."""
