"""`atdp audit-corpus`: what a model has memorised of a corpus. Private; use `atdp_cli.audit_corpus`."""
