"""The suite of Spaces against both ledgers."""

from __future__ import annotations

from pathlib import Path

from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.testing.suites.spaces import SpaceSuite, Stores

postgres_databases = postgres_server.postgres_databases


class TestSqliteSpaces(SpaceSuite):
    async def open(self, folder: Path) -> Stores:
        ledger = SqliteLedger(folder)
        return ledger, SqlSpaceBook(ledger)


class TestPostgresSpaces(SpaceSuite):
    async def open(self, folder: Path) -> Stores:
        ledger = PostgresLedger(server(18).database(folder), folder)
        return ledger, SqlSpaceBook(ledger)
