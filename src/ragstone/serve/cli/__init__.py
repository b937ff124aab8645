"""The command line: one module per command, options and errors in one place."""
