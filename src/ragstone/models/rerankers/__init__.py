"""Rerankers: a local cross-encoder, or an LLM."""
