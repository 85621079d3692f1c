"""Replacements of sensitive spans: placeholders and decoys. Private; use `atdp_cli.redact` and `atdp_cli.decoy`."""
