"""Data moves: into one archive and out of it, to another vector database, to another ledger."""
