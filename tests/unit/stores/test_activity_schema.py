"""An activity file of an earlier version is brought up to date, and says all that a retrieval log says."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragstone.core.activity import LoggedSearch, Turn
from ragstone.core.analysis import QueryAnalysis
from ragstone.core.errors import StoreError
from ragstone.core.types import Hit, SearchResult, Stage
from ragstone.core.web import WebResult
from ragstone.stores import activity_rows, turn_rows
from ragstone.stores.activity import ActivityFiles
from ragstone.stores.activity_log import SearchLog
from ragstone.stores.activity_schema import VERSION

START = datetime(2026, 1, 31, tzinfo=UTC)
VERSION_1 = """
CREATE TABLE IF NOT EXISTS searches (
    id INTEGER PRIMARY KEY,
    moment TEXT NOT NULL,
    kb TEXT NOT NULL,
    query TEXT NOT NULL,
    mode TEXT NOT NULL,
    latency_ms REAL NOT NULL,
    num_results INTEGER NOT NULL,
    top_score REAL NOT NULL,
    similarity REAL,
    coverage REAL NOT NULL,
    missing TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS searches_by_moment ON searches (moment);
CREATE TABLE IF NOT EXISTS shown (
    search_id INTEGER NOT NULL REFERENCES searches ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    chunk_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (search_id, rank)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS shown_by_document ON shown (document_id);
CREATE TABLE IF NOT EXISTS votes (
    kb TEXT NOT NULL,
    same_query TEXT NOT NULL,
    chunk_id TEXT NOT NULL,
    voter TEXT NOT NULL,
    moment TEXT NOT NULL,
    query TEXT NOT NULL,
    document_id TEXT NOT NULL,
    vote TEXT NOT NULL,
    PRIMARY KEY (kb, same_query, chunk_id, voter)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS votes_by_document ON votes (document_id);
CREATE TABLE IF NOT EXISTS golden (
    kb TEXT NOT NULL,
    query TEXT NOT NULL,
    document_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    PRIMARY KEY (kb, query, document_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS golden_by_document ON golden (document_id);
PRAGMA user_version = 1;
"""
OLD = "2026-01-30T09:00:00+00:00"


def _first_version(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(VERSION_1)
        for number, results in ((1, 2), (2, 0)):
            connection.execute(
                "INSERT INTO searches VALUES (?, ?, 'kb', 'old', 'fast', 5.5, ?, 0.5, NULL, 1.0, '')",
                (number, OLD, results),
            )
        connection.execute("INSERT INTO shown VALUES (1, 1, 'c1', 'd1', 0.5)")
        connection.execute(f"INSERT INTO votes VALUES ('kb', 'old', 'c1', '', '{OLD}', 'old', 'd1', 'up')")
        connection.commit()


async def _still(tenant: str, tenant_id: str) -> bool:
    return True


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


async def _read(files: ActivityFiles, **chosen: object) -> list[LoggedSearch]:
    return await files.run("t1", lambda db: activity_rows.read_searches(db, "kb", **chosen), [])  # type: ignore[arg-type]


@pytest.fixture
def files(tmp_path: Path) -> ActivityFiles:
    return ActivityFiles(tmp_path / "activity")


async def test_a_file_of_the_first_version_goes_on(files: ActivityFiles, tmp_path: Path) -> None:
    _first_version(tmp_path / "activity" / "t1.db")
    log = SearchLog(files, 30, _still, lambda: START)
    log.note("acme", "t1", "kb", _search("new", hits=(_hit(1),)), "talk")
    await log.close()
    new, empty, old = await _read(files)
    assert (new.query, new.conversation, new.tenant_id) == ("new", "talk", "t1")
    assert (old.query, old.tenant_id, old.success, old.total_results) == ("old", "t1", True, 2)
    assert (old.sources_queried, old.sources_returned) == (("documents",), ("documents",))
    assert (empty.sources_queried, empty.sources_returned) == (("documents",), ())
    assert [one.document_id for one in old.shown] == ["d1"]
    assert await files.run("t1", activity_rows.count_all, 0) == 4
    with closing(sqlite3.connect(tmp_path / "activity" / "t1.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    told = await files.read("t1", activity_rows.told_of, activity_rows.ToldOf(set(), set()))
    assert (told.documents, told.chunks, told.kbs) == ({"d1"}, set(), {"kb"})
    turn = Turn(START, "kb", "talk", "q", "a", ("d1", "d2"), ("c1", "c2"))
    await files.write("t1", lambda db: turn_rows.add_turn(db, turn, START))
    assert await files.read("t1", lambda db: turn_rows.read_turns(db, "kb", "talk", START), []) == [turn]


async def test_an_older_ragstone_may_have_set_the_version_back(files: ActivityFiles, tmp_path: Path) -> None:
    await files.write("t1", lambda _: None)
    with closing(sqlite3.connect(tmp_path / "activity" / "t1.db")) as connection:
        connection.executescript(VERSION_1)
    assert await files.run("t1", activity_rows.count_all, -1) == 0


async def test_a_file_of_a_newer_ragstone_is_left_alone(files: ActivityFiles, tmp_path: Path) -> None:
    await files.write("t1", lambda _: None)
    with closing(sqlite3.connect(tmp_path / "activity" / "t1.db")) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match="newer Ragstone"):
        await files.run("t1", activity_rows.count_all, 0)


def test_two_may_bring_a_file_up_to_date_at_once(tmp_path: Path) -> None:
    from ragstone.stores.activity import _run

    for number in range(5):
        path = tmp_path / f"t{number}.db"
        _first_version(path)
        counts: list[int] = []
        ready = threading.Barrier(4)

        def count(path: Path = path, counts: list[int] = counts, ready: threading.Barrier = ready) -> None:
            ready.wait()
            counts.append(_run(path, activity_rows.count_all))

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [3] * 4


@pytest.mark.req("R-DOM-22", "R-DOM-23", "R-TEN-10")
async def test_what_is_remembered_of_a_search(files: ActivityFiles) -> None:
    log = SearchLog(files, 30, _still, lambda: START)
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
    log.note("acme", "t1", "kb", everything, "talk")
    log.note("acme", "t1", "kb", spared)
    log.note("acme", "t1", "kb", _search("hello", route="none", trace=()))
    log.note("acme", "t1", "kb", _search("broken", trace=()), error="the disk is full")
    await log.close()
    failed, nothing, less, whole = await _read(files)
    assert (whole.tenant_id, whole.conversation, whole.query_type) == ("t1", "talk", "product")
    assert whole.sources_queried == whole.sources_returned == ("documents", "database", "internet")
    assert (whole.document_results_count, whole.database_results_count) == (2, 1)
    assert (whole.internet_results_count, whole.total_results) == (1, 4)
    assert (whole.retrieval_time_ms, whole.embedding_time_ms) == (12.5, 3.5)
    assert (whole.success, whole.error_message) == (True, "")
    assert (less.sources_queried, less.sources_returned, less.query_type) == (("documents",), (), "")
    assert (less.total_results, less.conversation) == (0, "")
    assert nothing.sources_queried == ()
    assert (failed.success, failed.error_message, failed.sources_queried) == (False, "the disk is full", ())
    assert [one.query for one in await _read(files, success=False)] == ["broken"]
    assert [one.query for one in await _read(files, conversation="talk")] == ["q"]


@pytest.mark.req("R-DOM-22", "R-DOM-24")
async def test_the_table_has_the_names_defaults_and_indexes_of_a_retrieval_log(
    files: ActivityFiles,
) -> None:
    def look(db: sqlite3.Connection) -> tuple[tuple[object, ...], set[tuple[str, ...]]]:
        db.execute(
            "INSERT INTO searches (moment, kb, query, mode, latency_ms, num_results, top_score, coverage, missing) "
            "VALUES ('2026', 'kb', 'q', 'fast', 7.5, 3, 0, 0, '')"
        )
        row = db.execute(
            "SELECT tenant_id, conversation, query, query_type, sources_queried, sources_returned, "
            "document_results_count, database_results_count, internet_results_count, total_results, "
            "retrieval_time_ms, embedding_time_ms, success, error_message FROM searches"
        ).fetchone()
        names = [one[1] for one in db.execute("PRAGMA index_list(searches)")]
        indexes = {tuple(one[2] for one in db.execute(f"PRAGMA index_info({name})")) for name in names}
        return row, indexes

    row, indexes = await files.write("t1", look)
    assert row == ("", "", "q", "", json.dumps(["documents"]), "[]", 3, 0, 0, 3, 7.5, 0.0, 1, "")
    assert {("tenant_id", "moment"), ("conversation",), ("success",)} <= indexes
