"""Scripts that try a checkpoint's patterns and templates in a process with limits of time and memory. Private."""
