"""Vectors in Qdrant."""
