"""`atdp audit-corpus`."""
