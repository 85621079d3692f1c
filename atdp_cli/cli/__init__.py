"""The command line: one file a command, which parses options and shows what the use case returns. Private."""
