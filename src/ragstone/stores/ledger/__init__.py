"""Ledgers: documents, versions, chunks, vectors and the change feed."""
