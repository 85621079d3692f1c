"""`atdp audit-canary`."""
