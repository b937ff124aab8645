"""What is kept of web searches, for whom and for how long, and what happens when the engine fails."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragstone.core.errors import RagstoneError, RateLimited, RemoteError
from ragstone.core.web import WebFindings, WebResult
from ragstone.websearch import store as store_module
from ragstone.websearch.searcher import WebSearcher
from ragstone.websearch.store import WebResultStore

PAGE = WebResult("Ferry", "https://ferry.example/", "It leaves at nine.", "2026-01-31", "double")
LATER = WebResult("Ferry", "https://ferry.example/", "It leaves at ten.", "2026-02-01", "double")
IDS = {"acme": "a" * 32, "globex": "b" * 32, "nobody": ""}


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
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "web-results.db"


def searcher(path: Path, clock: Clock, engine: Engine, hours: float = 24) -> WebSearcher:
    async def identify(tenant: str) -> str:
        return IDS[tenant]

    return WebSearcher(engine, WebResultStore(path, hours, clock), identify, 3)


def rows(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM internet_search_cache ORDER BY query_text").fetchall()


def is_there(path: Path) -> bool:
    return path.exists()


def content(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)


@pytest.mark.req("R-MOD-14", "R-CSA-15", "R-CSA-17")
async def test_results_are_kept_for_a_day_and_over_a_restart(path: Path, clock: Clock) -> None:
    engine = Engine([PAGE], [LATER])
    first = searcher(path, clock, engine)
    assert await first.find("acme", "ferry times") == WebFindings("ferry times", (PAGE,))
    clock.now += timedelta(hours=23, minutes=59)
    again = searcher(path, clock, engine)
    assert await again.find("acme", " ferry  times") == WebFindings(" ferry  times", (PAGE,), cached=True)
    assert await again.cached("acme", "ferry times") == (PAGE,)
    clock.now += timedelta(minutes=2)
    assert await again.cached("acme", "ferry times") is None
    assert await again.find("acme", "ferry times") == WebFindings("ferry times", (LATER,))
    assert engine.asked == [("ferry times", 3), ("ferry times", 3)]
    assert (again.hits, again.misses) == (1, 1)


@pytest.mark.req("R-MOD-16")
async def test_another_tenant_another_number_and_another_case_are_other_searches(
    path: Path, clock: Clock
) -> None:
    engine = Engine([PAGE], [LATER], [PAGE], [PAGE])
    searching = searcher(path, clock, engine)
    await searching.find("acme", "ferry times")
    assert (await searching.find("globex", "ferry times")).results == (LATER,)
    assert (await searching.find("acme", "ferry times", 5)).cached is False
    assert (await searching.find("acme", "Ferry times")).cached is False
    assert len(engine.asked) == 4


@pytest.mark.req("R-DOM-21")
async def test_what_a_row_says(path: Path, clock: Clock) -> None:
    searching = searcher(path, clock, Engine([PAGE, LATER]))
    await searching.find("acme", "w" * 600)
    ((digest, tenant, text, _, count, provider, made, expires),) = rows(path)
    assert (len(str(digest)), tenant, text, count, provider) == (64, "a" * 32, "w" * 500, 2, "double")
    assert (made, expires) == ("2026-01-31T12:00:00+00:00", "2026-02-01T12:00:00+00:00")


@pytest.mark.req("R-REL-04")
async def test_a_failure_is_skipped_and_logged(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    searching = searcher(path, clock, Engine([PAGE], RemoteError("double is down"), [LATER]))
    await searching.find("acme", "ferry")
    clock.now += timedelta(days=2)
    with caplog.at_level(logging.WARNING):
        assert await searching.find("acme", "ferry") == WebFindings("ferry", (), problem="double is down")
    assert caplog.messages == ["Internet search failed: double is down"]
    assert (await searching.find("acme", "ferry")).results == (LATER,)


@pytest.mark.req("R-REL-05")
async def test_a_limit_brings_what_is_kept_however_old_or_nothing(path: Path, clock: Clock) -> None:
    limited = RateLimited("double is limiting requests (429)")
    searching = searcher(path, clock, Engine([PAGE], limited, limited))
    await searching.find("acme", "ferry")
    clock.now += timedelta(days=20)
    assert await searching.find("acme", "ferry") == WebFindings("ferry", (PAGE,), True, str(limited))
    assert await searching.find("acme", "trains") == WebFindings("trains", (), False, str(limited))


async def test_nothing_found_is_asked_again(path: Path, clock: Clock) -> None:
    searching = searcher(path, clock, Engine([], [PAGE]))
    assert (await searching.find("acme", "ferry")).results == ()
    assert (await searching.find("acme", "ferry")).results == (PAGE,)


@pytest.mark.parametrize(("hours", "tenant"), [(0, "acme"), (24, "nobody")])
async def test_where_nothing_is_kept(path: Path, clock: Clock, hours: float, tenant: str) -> None:
    searching = searcher(path, clock, Engine([PAGE], [LATER]), hours)
    assert (await searching.find(tenant, "ferry")).results == (PAGE,)
    assert (await searching.find(tenant, "ferry")).results == (LATER,)
    assert not is_there(path)


async def test_a_tenant_is_forgotten_alone(path: Path, clock: Clock) -> None:
    searching = searcher(path, clock, Engine([PAGE], [PAGE]))
    await searching.find("acme", "a very private question")
    await searching.find("globex", "ferry")
    await WebResultStore(path, 24, clock).forget(IDS["acme"])
    assert [row[1] for row in rows(path)] == [IDS["globex"]]
    assert b"private" not in content(path)


async def test_forgetting_where_nothing_is_makes_nothing(path: Path, clock: Clock) -> None:
    await WebResultStore(path, 24, clock).forget(IDS["acme"])
    assert not is_there(path)


async def test_the_file_does_not_grow_for_ever(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MOST_ROWS", 2)
    searching = searcher(path, clock, Engine([PAGE], [PAGE], [PAGE], [PAGE]))
    for query in ("one", "two", "three"):
        await searching.find("acme", query)
        clock.now += timedelta(minutes=1)
    assert [row[2] for row in rows(path)] == ["three", "two"]
    clock.now += timedelta(days=32)
    await searching.find("acme", "four")
    assert [row[2] for row in rows(path)] == ["four"]


@pytest.mark.parametrize("damage", [b"not a database at all " * 300, b""])
async def test_a_damaged_file_costs_a_search_and_no_more(path: Path, clock: Clock, damage: bytes) -> None:
    searching = searcher(path, clock, Engine([PAGE], [LATER], [PAGE]))
    await searching.find("acme", "ferry")
    write(path, damage)
    assert (await searching.find("acme", "ferry")).results == (LATER,)
    found = await searching.find("acme", "ferry")
    assert (found.results, found.cached) == ((LATER,), True)


async def test_a_place_that_cannot_be_written_is_no_obstacle(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    searching = searcher(tmp_path / "file" / "web.db", clock, Engine([PAGE]))
    assert (await searching.find("acme", "ferry")).results == (PAGE,)
