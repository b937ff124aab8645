"""Rows of SQL databases, ingested or searched live."""
