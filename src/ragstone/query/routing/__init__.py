"""Decide what kind of query this is, and search the sources that can answer it."""
