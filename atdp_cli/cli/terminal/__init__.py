"""The terminal: console, progress bars, exit codes, signals."""
