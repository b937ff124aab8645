"""The retrieval log: written in batches off the request path, bounded, and with the names others know."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragstone.core import background
from ragstone.core.activity import LoggedSearch, PassageVote
from ragstone.core.search import QueryAnalysis, SearchResult, Stage, WebResult
from ragstone.core.types import Hit
from ragstone.stores.activity import feedback, retrieval_log
from ragstone.stores.activity.feedback import FeedbackRepository
from ragstone.stores.activity.retrieval_log import RetrievalLog
from ragstone.stores.activity.search_log import SearchLog
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.testing.builders import make_version, put

START = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path)
    await put(opened, make_version("d0"))
    yield opened
    await opened.close()


@pytest.fixture
def log(ledger: SqliteLedger) -> SearchLog:
    return SearchLog(ledger, 30, lambda: START)


def _files(folder: Path, name: str) -> list[Path]:
    return list(folder.glob(f"tenants/*/{name}.db"))


async def _tenant_id(ledger: SqliteLedger) -> str:
    return await ledger.read("default", lambda _, tenant_id: tenant_id)


async def _document_id(ledger: SqliteLedger) -> str:
    kb = await ledger.of("default").kb("default")
    assert kb is not None
    [document] = await ledger.of("default").documents(kb)
    return document.id


def _result(query: str, hits: int = 1, document_id: str = "gone") -> SearchResult:
    found = tuple(
        Hit(f"c{n}", document_id, "", "", "", None, "granite rock", 0.9 - n / 100, {"dense": 0.5}, {}, 0, 1)
        for n in range(hits)
    )
    return SearchResult(query, query, "fast", found, (), (), 12.5)


async def _note(ledger: SqliteLedger, log: SearchLog, *queries: str) -> None:
    tenant_id = await _tenant_id(ledger)
    for query in queries:
        log.note("default", tenant_id, "default", _result(query))


async def _logged(ledger: SqliteLedger) -> list[str]:
    return [one.query for one in await RetrievalLog(ledger, "default").searches("default")]


async def test_notes_are_written_together_a_moment_later(
    ledger: SqliteLedger, log: SearchLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "PAUSE_SECONDS", 0.0)
    writes: list[list[LoggedSearch]] = []
    add = RetrievalLog.add

    async def counted(self: RetrievalLog, searches: list[LoggedSearch], oldest: datetime) -> None:
        writes.append(searches)
        await add(self, searches, oldest)

    monkeypatch.setattr(RetrievalLog, "add", counted)
    await _note(ledger, log, "q0", "q1", "q2")
    await asyncio.sleep(0)  # the timer's turn
    await log.flush()
    assert [[one.query for one in batch] for batch in writes] == [["q0", "q1", "q2"]]
    assert await _logged(ledger) == ["q2", "q1", "q0"]


async def test_only_the_first_passages_of_documents_that_are_there_are_logged(
    ledger: SqliteLedger, log: SearchLog
) -> None:
    tenant_id, document_id = await _tenant_id(ledger), await _document_id(ledger)
    log.note("default", tenant_id, "default", _result("granite mountains", 25, document_id))
    log.note("default", tenant_id, "default", _result("of old"))
    await log.close()
    old, one = await RetrievalLog(ledger, "default").searches("default")
    assert (one.num_results, len(one.shown), one.top_score, one.similarity) == (25, 10, 0.9, 0.5)
    assert (one.coverage, one.missing) == (0.5, ("mountains",))
    assert (old.num_results, old.shown) == (1, ())


@pytest.mark.parametrize("tenant", ["nobody", "default"])
async def test_nothing_is_kept_of_a_tenant_that_is_gone(
    ledger: SqliteLedger, log: SearchLog, tmp_path: Path, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    log.note(tenant, "another-id", "default", _result("q"))
    await log.close()
    assert await _logged(ledger) == []
    assert (log.dropped_count, caplog.text) == (0, "")


async def test_the_log_goes_with_its_tenant(ledger: SqliteLedger, log: SearchLog, tmp_path: Path) -> None:
    await _note(ledger, log, "q")
    await log.flush()
    tenant_id = await _tenant_id(ledger)
    assert (tmp_path / "tenants" / tenant_id / "retrieval_log.db").exists()
    await SqlTenantBook(ledger).delete("default")
    assert not (tmp_path / "tenants" / tenant_id).exists()


async def test_too_many_at_once_are_dropped_and_counted(
    ledger: SqliteLedger, log: SearchLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "MOST_WAITING", 2)
    await _note(ledger, log, *(f"q{n}" for n in range(5)))
    await log.close()
    assert (log.dropped_count, await _logged(ledger)) == (3, ["q1", "q0"])
    assert "3 searches were not logged" in caplog.text


async def test_old_searches_are_forgotten(ledger: SqliteLedger, log: SearchLog) -> None:
    early = SearchLog(ledger, 30, lambda: START - timedelta(days=31))
    await _note(ledger, early, "old")
    await early.close()
    assert await _logged(ledger) == ["old"]
    await _note(ledger, log, "new")
    await log.close()
    assert await _logged(ledger) == ["new"]


async def test_only_the_owner_may_read_the_file(ledger: SqliteLedger, log: SearchLog, tmp_path: Path) -> None:
    await _note(ledger, log, "q")
    await log.close()
    [file] = _files(tmp_path, "retrieval_log")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_looking_makes_no_file(ledger: SqliteLedger, tmp_path: Path) -> None:
    assert await _logged(ledger) == []
    assert await RetrievalLog(ledger, "nobody").searches("default") == []
    await ledger.clean_up("default")
    assert _files(tmp_path, "retrieval_log") == []


async def test_the_log_does_not_wait_for_whoever_writes_to_the_ledger(
    ledger: SqliteLedger, log: SearchLog, tmp_path: Path
) -> None:
    [file] = _files(tmp_path, "ledger")
    await _note(ledger, log, "q")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await log.flush()
    assert await _logged(ledger) == ["q"]


async def test_two_writers_take_turns(ledger: SqliteLedger, tmp_path: Path) -> None:
    other = SqliteLedger(tmp_path)
    logs = [SearchLog(place, 30, lambda: START) for place in (ledger, other)]
    for n in range(10):
        await _note(ledger, logs[0], f"a{n}")
        await _note(ledger, logs[1], f"b{n}")
        await asyncio.gather(*(one.flush() for one in logs))
    assert len(await _logged(other)) == 20
    await other.close()


async def test_who_gives_up_waiting_takes_nobody_along(
    ledger: SqliteLedger, log: SearchLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, add = asyncio.Event(), RetrievalLog.add

    async def slow(self: RetrievalLog, searches: list[LoggedSearch], oldest: datetime) -> None:
        await go_on.wait()
        await add(self, searches, oldest)

    monkeypatch.setattr(RetrievalLog, "add", slow)
    await _note(ledger, log, "q")
    first, second = asyncio.create_task(log.flush()), asyncio.create_task(log.flush())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go_on.set()
    await second
    await log.flush()
    assert await _logged(ledger) == ["q"]


async def test_only_the_newest_are_kept(ledger: SqliteLedger, log: SearchLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval_log, "MOST_SEARCHES", 2)
    monkeypatch.setattr(feedback, "MOST_VOTES", 2)
    await _note(ledger, log, *(f"q{n}" for n in range(4)))
    await log.close()
    assert await _logged(ledger) == ["q3", "q2"]
    document_id = await _document_id(ledger)
    repository = FeedbackRepository(ledger, "default")
    votes = [PassageVote(START + timedelta(n), "default", f"q{n}", "c1", document_id, "up") for n in range(4)]
    await repository.add_votes("default", votes)
    assert [one.query for one in await repository.votes("default")] == ["q3", "q2"]


def _search(query: str, **facts: object) -> SearchResult:
    stages = (Stage("embed_query", 1.5, 1, 1), Stage("embed_query", 2.0, 1, 1), Stage("dense", 9.0, 1, 1))
    return SearchResult(
        **{
            "query": query,
            "rewritten_query": query,
            "mode": "fast",
            "hits": (),
            "trace": stages,
            "degraded": (),
            "took_ms": 12.5,
        }
        | facts
    )  # type: ignore[arg-type]


def _hit(number: int) -> Hit:
    return Hit(f"c{number}", f"d{number}", "", "", "", None, "granite", 0.9, {}, {}, 0, 1)


@pytest.mark.req("R-DOM-22", "R-DOM-23", "R-TEN-10")
async def test_what_is_remembered_of_a_search(ledger: SqliteLedger, log: SearchLog) -> None:
    trace = _search("q").trace
    analysis = QueryAnalysis("product", (), (), ("documents", "database"))
    page = WebResult("A page", "https://example.org/", "Words.")
    everything = _search(
        "q",
        hits=(_hit(1), _hit(2)),
        records=(_hit(3),),
        web=(page,),
        route="web",
        analysis=analysis,
        trace=(*trace, Stage("database", 1.0, 1, 1), Stage("web", 1.0, 1, 1)),
    )
    spared = _search("r", trace=(*trace, Stage("web", 0.0, 0, 0, "the passages suffice")))
    tenant_id = await _tenant_id(ledger)
    log.note("default", tenant_id, "default", everything, "talk")
    log.note("default", tenant_id, "default", spared)
    log.note("default", tenant_id, "default", _search("hello", route="none", trace=()))
    log.note("default", tenant_id, "default", _search("broken", trace=()), error="the disk is full")
    await log.close()
    repository = RetrievalLog(ledger, "default")
    failed, nothing, less, whole = await repository.searches("default")
    assert (whole.tenant_id, whole.conversation, whole.query_type) == (tenant_id, "talk", "product")
    assert whole.sources_queried == whole.sources_returned == ("documents", "database", "internet")
    assert (whole.document_results_count, whole.database_results_count) == (2, 1)
    assert (whole.internet_results_count, whole.total_results) == (1, 4)
    assert (whole.retrieval_time_ms, whole.embedding_time_ms) == (12.5, 3.5)
    assert (whole.success, whole.error_message) == (True, "")
    assert (less.sources_queried, less.sources_returned, less.query_type) == (("documents",), (), "")
    assert (less.total_results, less.conversation) == (0, "")
    assert nothing.sources_queried == ()
    assert (failed.success, failed.error_message, failed.sources_queried) == (False, "the disk is full", ())
    assert [one.query for one in await repository.searches("default", success=False)] == ["broken"]
    assert [one.query for one in await repository.searches("default", conversation="talk")] == ["q"]


@pytest.mark.req("R-DOM-22", "R-DOM-24")
async def test_the_table_has_the_names_defaults_and_indexes_of_a_retrieval_log(
    ledger: SqliteLedger, log: SearchLog, tmp_path: Path
) -> None:
    await _note(ledger, log, "q")
    await log.close()
    [file] = _files(tmp_path, "retrieval_log")
    with closing(sqlite3.connect(file)) as db:
        columns = {name: default for _, name, _, _, default, _ in db.execute("PRAGMA table_info(retrieval_log)")}
        names = [one[1] for one in db.execute("PRAGMA index_list(retrieval_log)")]
        indexes = {tuple(one[2] for one in db.execute(f"PRAGMA index_info({name})")) for name in names}
    counts = ("document_results_count", "database_results_count", "internet_results_count", "total_results")
    assert {columns[name] for name in (*counts, "retrieval_time_ms", "embedding_time_ms")} == {"'0'"}
    assert columns["success"] == "'1'"
    assert {"tenant_id", "conversation", "query", "query_type", "error_message"} <= columns.keys()
    assert (columns["sources_queried"], columns["sources_returned"]) == ("'[]'", "'[]'")
    assert {("tenant_id", "moment"), ("conversation",), ("success",)} <= indexes
