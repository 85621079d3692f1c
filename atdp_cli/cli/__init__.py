"""The command line: one file a command, parsing beside doing."""
