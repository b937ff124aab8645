"""The shipped suites against the stores in the box."""

from __future__ import annotations

from pathlib import Path

from ragstone.core.protocols import Ledger, LexicalIndex, VectorIndex
from ragstone.stores.ledger.sqlite import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer, SqliteLexicalIndex
from ragstone.stores.residents import Residents
from ragstone.stores.vectors.sqlite import SqliteVectorIndex
from ragstone.testing.ledger_suite import LedgerSuite
from ragstone.testing.lexical_suite import LexicalSuite
from ragstone.testing.vector_suite import VectorSuite


def open_ledger(folder: Path) -> SqliteLedger:
    return SqliteLedger(folder, [Fts5Writer()])


class TestSqliteLedger(LedgerSuite):
    async def open(self, folder: Path) -> Ledger:
        return open_ledger(folder)


class TestSqliteVectorIndex(VectorSuite):
    async def open(self, folder: Path) -> tuple[Ledger, VectorIndex]:
        ledger = open_ledger(folder)
        return ledger, SqliteVectorIndex(ledger, Residents(64))


class TestSqliteLexicalIndex(LexicalSuite):
    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        ledger = open_ledger(folder)
        return ledger, SqliteLexicalIndex(ledger, Residents(64))
