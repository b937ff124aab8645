"""Compare two stores after a move."""
