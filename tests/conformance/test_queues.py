"""The shipped suite against the queue in the box."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.suites import sources as source_suite
from tests.conformance.suites.queues import QueueSuite, Stores

from ragstone.stores.ledger.queue import SqlQueue
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer


class TestSqlQueue(QueueSuite):
    async def open(self, folder: Path) -> Stores:
        ledger = SqliteLedger(folder, [Fts5Writer()])
        return ledger, SqlQueue(ledger)

    @pytest.mark.req("R-ING-16", "R-ING-17")
    async def test_a_document_is_where_its_job_is_until_it_is_live(self, stores: Stores) -> None:
        await super().test_a_document_is_where_its_job_is_until_it_is_live(stores)

    @pytest.mark.req("R-ING-20", "R-ING-21")
    async def test_notices_say_how_jobs_ended(self, stores: Stores) -> None:
        await super().test_notices_say_how_jobs_ended(stores)

    @pytest.mark.req("R-ING-34")
    async def test_the_sooner_priority_goes_first_then_the_older_job(self, stores: Stores) -> None:
        await super().test_the_sooner_priority_goes_first_then_the_older_job(stores)


class TestSqlSourceBook(source_suite.SourceSuite):
    async def open(self, folder: Path) -> source_suite.Stores:
        return source_suite.with_sources(SqliteLedger(folder, [Fts5Writer()], vault=source_suite.VAULT))
