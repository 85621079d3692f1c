"""What stands for a sensitive span: placeholders and decoys. Private; use `atdp_cli.redact` and `atdp_cli.decoy`."""
