"""Corpus files of a collection, kept beside the ledger."""
