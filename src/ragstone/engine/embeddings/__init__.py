"""The embeddings of a kb and their upkeep: `triggers` says when, `refresh` and `reembed` do it."""
