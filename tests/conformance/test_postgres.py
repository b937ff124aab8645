"""The shipped suites against PostgreSQL 18 and 16."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import on_16, server
from tests.conformance.suites import sources as source_suite
from tests.conformance.suites.ledgers import LedgerSuite
from tests.conformance.suites.queues import QueueSuite, Stores

from ragstone.core.ledger import Ledger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.queue import SqlQueue

postgres_databases = postgres_server.postgres_databases


class TestPostgresLedger(LedgerSuite):
    version = 18

    async def open(self, folder: Path) -> Ledger:
        return PostgresLedger(server(self.version).database(folder), folder)

    @pytest.mark.req("R-TEN-06", "R-TEN-07")
    async def test_two_tenants_never_see_each_other(self, ledger: Ledger) -> None:
        await super().test_two_tenants_never_see_each_other(ledger)


class TestPostgresLedger16(TestPostgresLedger):
    version = 16


class TestPostgresQueue(QueueSuite):
    version = 18

    async def open(self, folder: Path) -> Stores:
        ledger = PostgresLedger(server(self.version).database(folder), folder)
        return ledger, SqlQueue(ledger)


class TestPostgresSourceBook(source_suite.SourceSuite):
    async def open(self, folder: Path) -> source_suite.Stores:
        ledger = PostgresLedger(server(18).database(folder), folder, vault=source_suite.VAULT)
        return source_suite.with_sources(ledger)


TestPostgresQueue16 = on_16(
    TestPostgresQueue,
    "test_a_job_is_taken_once_and_completed",
    "test_the_sooner_priority_goes_first_then_the_older_job",
    "test_notices_say_how_jobs_ended",
)
