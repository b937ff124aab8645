"""EXTRACT: the bytes of a file → text and blocks, in a child process that may die without harm."""
