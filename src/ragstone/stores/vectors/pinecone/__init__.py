"""Vectors in Pinecone."""
