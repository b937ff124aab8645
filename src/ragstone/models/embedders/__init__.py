"""Embedders: local, remote, static, and their cache and fallback."""
