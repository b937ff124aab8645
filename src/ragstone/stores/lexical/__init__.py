"""Indexes that find chunks by word."""
