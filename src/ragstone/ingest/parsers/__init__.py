"""EXTRACT: the bytes of a file → text and blocks, in a child process that may die without harm."""

FINGERPRINT = "parsers-11"
"""Changes whenever the same file would give another text: documents of another fingerprint are read again."""
