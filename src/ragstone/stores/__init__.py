"""Where knowledge is kept: the ledger is the truth, indexes are derived from it."""
