"""What commands print with --json, as models."""
