"""Stores: the ledger is the truth, and indexes are derived from it."""
