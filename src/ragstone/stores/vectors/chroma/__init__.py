"""Vectors in Chroma."""
