"""Reports looked at in a browser: long, and not among the tests."""
