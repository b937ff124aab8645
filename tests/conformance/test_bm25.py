"""BM25 in memory over every ledger."""

from __future__ import annotations

from pathlib import Path

from tests.conformance import postgres_server

from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LexicalIndex
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.testing.suites.lexical import WordWeightSuite

postgres_databases = postgres_server.postgres_databases


class TestBm25OverSqlite(WordWeightSuite):
    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        ledger = SqliteLedger(folder, ResidentBm25Index.writers())
        return ledger, ResidentBm25Index(ledger, IndexCache(64))


class TestBm25OverPostgres(WordWeightSuite):
    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        dsn = postgres_server.server(18).database(folder)
        ledger = PostgresLedger(dsn, folder, ResidentBm25Index.writers())
        return ledger, ResidentBm25Index(ledger, IndexCache(64))
