"""Scripts that try, in a process with limits, what a checkpoint brings: patterns and templates that may never end."""
