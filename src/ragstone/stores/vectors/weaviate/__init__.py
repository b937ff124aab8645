"""Vectors in Weaviate."""
