"""`atdp audit-canary`: canaries, their exact rank over the pool, the verdict. Private; use `atdp_cli.audit_canary`."""
