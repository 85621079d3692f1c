"""`atdp harden` as a function, and what only it needs."""
