"""Vector databases outside the ledger: writing, catching up, reconciling."""
