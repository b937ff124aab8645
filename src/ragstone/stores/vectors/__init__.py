"""Indexes that find chunks by meaning."""
