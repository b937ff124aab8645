"""Embeddings are looked after without being asked: `triggers` says when, `refresher` does it."""
