"""A vector provider behind the ledger, opened the way the engine opens it."""

from __future__ import annotations

from pathlib import Path

from ragstone.core.vectors import VectorProvider
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.stores.vectors.derived.index import DerivedIndex


def open_derived(folder: Path, provider: VectorProvider) -> tuple[SqliteLedger, DerivedIndex]:
    """A ledger whose every commit reaches the provider."""
    ledger = SqliteLedger(folder, [Fts5Writer()])
    index = DerivedIndex(ledger, provider)
    ledger.followers = (index,)
    return ledger, index
