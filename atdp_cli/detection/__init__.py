"""The detector: spans of four tiers. Private; use `atdp_cli.detect` and `atdp_cli.redact`."""
