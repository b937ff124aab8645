"""Parsers run in child processes with limits on time and memory."""
