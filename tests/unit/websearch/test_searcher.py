"""What is kept of web searches, for whom and for how long, and what happens when the engine fails."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragstone.core.errors import RagstoneError, RateLimited, RemoteError, StoreFull
from ragstone.core.search import WebFindings, WebResult
from ragstone.stores.activity import web_results
from ragstone.stores.activity.web_results import WebResultRepository
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.websearch.searcher import WebSearcher

PAGE = WebResult("Ferry", "https://ferry.example/", "It leaves at nine.", "2026-01-31", "double")
LATER = WebResult("Ferry", "https://ferry.example/", "It leaves at ten.", "2026-02-01", "double")


class Engine:
    """Finds what it was given, once each, and fails where that is an error."""

    name = "double"

    def __init__(self, *outcomes: list[WebResult] | RagstoneError) -> None:
        self.outcomes = list(outcomes)
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, k: int) -> list[WebResult]:
        self.asked.append((query, k))
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, RagstoneError):
            raise outcome
        return outcome

    async def close(self) -> None: ...


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 31, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path / "data")
    for name in ("acme", "globex"):
        await SqlTenantBook(opened).create(name)
    yield opened
    await opened.close()


def searcher(ledger: SqliteLedger, clock: Clock, engine: Engine, hours: float = 24) -> WebSearcher:
    return WebSearcher(engine, lambda tenant: WebResultRepository(ledger, tenant, hours, clock), 3)


async def rows(ledger: SqliteLedger, tenant: str = "acme") -> list[tuple[object, ...]]:
    return await ledger.read(
        tenant, lambda db, _: db.execute("SELECT * FROM web_results ORDER BY query_text").fetchall()
    )


@pytest.mark.req("R-CSA-15", "R-MOD-14")
async def test_results_are_kept_for_a_day_and_over_a_restart(ledger: SqliteLedger, clock: Clock) -> None:
    engine = Engine([PAGE], [LATER])
    first = searcher(ledger, clock, engine)
    assert await first.find("acme", "ferry times") == WebFindings("ferry times", (PAGE,))
    clock.now += timedelta(hours=23, minutes=59)
    again = searcher(ledger, clock, engine)
    assert await again.find("acme", " ferry  times") == WebFindings(" ferry  times", (PAGE,), cached=True)
    assert await again.find_cached("acme", "ferry times") == (PAGE,)
    clock.now += timedelta(minutes=2)
    assert await again.find_cached("acme", "ferry times") is None
    assert await again.find("acme", "ferry times") == WebFindings("ferry times", (LATER,))
    assert engine.asked == [("ferry times", 3), ("ferry times", 3)]
    assert (again.hits, again.misses) == (1, 1)


@pytest.mark.req("R-CSA-17")
async def test_the_share_of_searches_that_the_cache_answered_is_counted_and_logged(
    ledger: SqliteLedger, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ragstone.websearch")
    searching = searcher(ledger, clock, Engine([PAGE], [PAGE]))
    assert searching.hit_rate is None
    for query in ("ferry times", "ferry times", "pier", "ferry times"):
        await searching.find("acme", query)
    assert (searching.hits, searching.misses, searching.hit_rate) == (2, 2, 0.5)
    assert [record.getMessage() for record in caplog.records] == [
        "web search cache: 0 of 1 searches answered from it",
        "web search cache: 1 of 2 searches answered from it",
        "web search cache: 1 of 3 searches answered from it",
        "web search cache: 2 of 4 searches answered from it",
    ]


@pytest.mark.req("R-MOD-16")
async def test_another_tenant_another_number_and_another_case_are_other_searches(
    ledger: SqliteLedger, clock: Clock
) -> None:
    engine = Engine([PAGE], [LATER], [PAGE], [PAGE])
    searching = searcher(ledger, clock, engine)
    await searching.find("acme", "ferry times")
    assert (await searching.find("globex", "ferry times")).results == (LATER,)
    assert (await searching.find("acme", "ferry times", 5)).cached is False
    assert (await searching.find("acme", "Ferry times")).cached is False
    assert len(engine.asked) == 4


@pytest.mark.req("R-DOM-21")
async def test_what_a_row_says(ledger: SqliteLedger, clock: Clock) -> None:
    searching = searcher(ledger, clock, Engine([PAGE, LATER]))
    await searching.find("acme", "w" * 600)
    ((tenant_id, digest, text, _, count, provider, made, expires),) = await rows(ledger)
    tenant = await SqlTenantBook(ledger).get("acme")
    assert tenant is not None
    assert (len(str(digest)), tenant_id, text, count, provider) == (64, tenant.id, "w" * 500, 2, "double")
    assert (made, expires) == ("2026-01-31T12:00:00+00:00", "2026-02-01T12:00:00+00:00")


@pytest.mark.req("R-REL-04")
async def test_a_failure_is_skipped_and_logged(
    ledger: SqliteLedger, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    searching = searcher(ledger, clock, Engine([PAGE], RemoteError("double is down"), [LATER]))
    await searching.find("acme", "ferry")
    clock.now += timedelta(days=2)
    with caplog.at_level(logging.WARNING):
        assert await searching.find("acme", "ferry") == WebFindings("ferry", (), problem="double is down")
    assert caplog.messages == ["Internet search failed: double is down"]
    assert (await searching.find("acme", "ferry")).results == (LATER,)


@pytest.mark.req("R-REL-05")
async def test_a_limit_brings_what_is_kept_however_old_or_nothing(ledger: SqliteLedger, clock: Clock) -> None:
    limited = RateLimited("double is limiting requests (429)")
    searching = searcher(ledger, clock, Engine([PAGE], limited, limited))
    await searching.find("acme", "ferry")
    clock.now += timedelta(days=20)
    assert await searching.find("acme", "ferry") == WebFindings("ferry", (PAGE,), True, str(limited))
    assert await searching.find("acme", "trains") == WebFindings("trains", (), False, str(limited))


async def test_nothing_found_is_asked_again(ledger: SqliteLedger, clock: Clock) -> None:
    searching = searcher(ledger, clock, Engine([], [PAGE]))
    assert (await searching.find("acme", "ferry")).results == ()
    assert (await searching.find("acme", "ferry")).results == (PAGE,)


@pytest.mark.parametrize(("hours", "tenant"), [(0, "acme"), (24, "nobody")])
async def test_where_nothing_is_kept(ledger: SqliteLedger, clock: Clock, hours: float, tenant: str) -> None:
    searching = searcher(ledger, clock, Engine([PAGE], [LATER]), hours)
    assert (await searching.find(tenant, "ferry")).results == (PAGE,)
    assert (await searching.find(tenant, "ferry")).results == (LATER,)
    assert await rows(ledger) == []


async def test_a_tenant_is_forgotten_alone(ledger: SqliteLedger, clock: Clock) -> None:
    searching = searcher(ledger, clock, Engine([PAGE], [PAGE]))
    await searching.find("acme", "a very private question")
    await searching.find("globex", "ferry")
    await SqlTenantBook(ledger).delete("acme")
    assert len(await rows(ledger, "globex")) == 1
    assert await searching.find_cached("acme", "a very private question") is None


async def test_a_tenant_keeps_a_bounded_number_for_a_bounded_time(
    ledger: SqliteLedger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_results, "MOST_ROWS", 2)
    searching = searcher(ledger, clock, Engine([PAGE], [PAGE], [PAGE], [PAGE]))
    for query in ("one", "two", "three"):
        await searching.find("acme", query)
        clock.now += timedelta(minutes=1)
    assert [row[2] for row in await rows(ledger)] == ["three", "two"]
    clock.now += timedelta(days=32)
    await searching.find("acme", "four")
    assert [row[2] for row in await rows(ledger)] == ["four"]


async def test_results_that_cannot_be_read_cost_a_search_and_no_more(
    ledger: SqliteLedger, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    searching = searcher(ledger, clock, Engine([PAGE], [LATER]))
    await searching.find("acme", "ferry")
    await ledger.write("acme", lambda db, _: db.execute("UPDATE web_results SET results = 'damaged'"))
    assert (await searching.find("acme", "ferry")).results == (LATER,)
    assert "cannot read kept web results" in caplog.text
    assert await searching.find_cached("acme", "ferry") == (LATER,)


async def test_a_ledger_that_cannot_be_written_is_no_obstacle(
    ledger: SqliteLedger, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(*_: object) -> None:
        raise StoreFull("no space left")

    monkeypatch.setattr(ledger, "write", full)
    assert (await searcher(ledger, clock, Engine([PAGE])).find("acme", "ferry")).results == (PAGE,)
    assert caplog.messages == ["cannot keep web results: no space left"]
