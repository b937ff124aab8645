"""Vectors in Milvus."""
