"""SQL of the activity file: each function is a piece of work on its connection."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ragstone.core.activity import Feedback, GoldenQuery, LoggedSearch, Origin, Shown, same_query
from ragstone.core.clock import canonical

TABLES = ("votes", "golden", "shown")
"""Those with rows of a document."""
MOST_SEARCHES = 100_000
"""Of a tenant, the newest: as many as are kept, and looked at together."""
MOST_VOTES = 100_000


def add_searches(db: sqlite3.Connection, searches: Iterable[LoggedSearch], oldest: datetime) -> None:
    """Remember searches, and forget those of before `oldest` and beyond the newest `MOST_SEARCHES`."""
    for one in searches:
        cursor = db.execute(
            "INSERT INTO searches (moment, kb, query, mode, latency_ms, num_results, top_score, similarity, "
            "coverage, missing) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                canonical(one.moment),
                one.kb,
                one.query,
                one.mode,
                one.latency_ms,
                one.num_results,
                one.top_score,
                one.similarity,
                one.coverage,
                " ".join(one.missing),
            ),
        )
        db.executemany(
            "INSERT INTO shown (search_id, rank, chunk_id, document_id, score) VALUES (?, ?, ?, ?, ?)",
            [(cursor.lastrowid, hit.rank, hit.chunk_id, hit.document_id, hit.score) for hit in one.shown],
        )
    db.execute("DELETE FROM searches WHERE moment < ?", (canonical(oldest),))
    _keep_newest(db, "searches", ("id",), "id", MOST_SEARCHES)


def _keep_newest(db: sqlite3.Connection, table: str, key: Sequence[str], order: str, most: int) -> None:
    over = int(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]) - most
    if over > 0:
        names = ", ".join(key)
        db.execute(
            f"DELETE FROM {table} WHERE ({names}) IN (SELECT {names} FROM {table} ORDER BY {order} LIMIT ?)",
            (over,),
        )


def read_searches(
    db: sqlite3.Connection, kb: str, since: datetime | None = None, limit: int = MOST_SEARCHES
) -> list[LoggedSearch]:
    """Searches of a kb with what they brought, newest first."""
    chosen = "SELECT * FROM searches WHERE kb = ? AND moment >= ? ORDER BY id DESC LIMIT ?"
    values = (kb, canonical(since) if since else "", limit)
    shown: dict[int, list[Shown]] = defaultdict(list)
    for search_id, *hit in db.execute(
        f"SELECT s.search_id, s.rank, s.chunk_id, s.document_id, s.score FROM ({chosen}) t "
        "JOIN shown s ON s.search_id = t.id ORDER BY s.search_id, s.rank",
        values,
    ):
        shown[search_id].append(Shown(*hit))
    return [_search(row, tuple(shown[row[0]])) for row in db.execute(chosen, values)]


def _search(row: tuple[Any, ...], shown: tuple[Shown, ...]) -> LoggedSearch:
    _, moment, kb, query, mode, latency, results, top_score, similarity, coverage, missing = row
    return LoggedSearch(
        moment=datetime.fromisoformat(moment),
        kb=kb,
        query=query,
        mode=mode,
        latency_ms=latency,
        num_results=results,
        top_score=top_score,
        similarity=similarity,
        coverage=coverage,
        missing=tuple(missing.split()),
        shown=shown,
    )


def add_votes(db: sqlite3.Connection, votes: Iterable[Feedback]) -> None:
    """Write down votes; what a voter says later of the same replaces it. The newest `MOST_VOTES` are kept."""
    db.executemany(
        "INSERT INTO votes (kb, same_query, chunk_id, voter, moment, query, document_id, vote) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "moment = excluded.moment, query = excluded.query, document_id = excluded.document_id, vote = excluded.vote",
        [
            (
                one.kb,
                same_query(one.query),
                one.chunk_id,
                one.voter,
                canonical(one.moment),
                one.query,
                one.document_id,
                one.vote,
            )
            for one in votes
        ],
    )
    _keep_newest(db, "votes", ("kb", "same_query", "chunk_id", "voter"), "moment", MOST_VOTES)


def read_votes(db: sqlite3.Connection, kb: str, limit: int = -1) -> list[Feedback]:
    """Votes on passages of a kb, newest first."""
    rows = db.execute(
        "SELECT moment, kb, query, chunk_id, document_id, vote, voter FROM votes WHERE kb = ? "
        "ORDER BY moment DESC, same_query, chunk_id, voter LIMIT ?",
        (kb, limit),
    )
    return [Feedback(datetime.fromisoformat(moment), *facts) for moment, *facts in rows]


def add_golden(db: sqlite3.Connection, queries: Iterable[GoldenQuery]) -> int:
    """Keep golden queries; how many are new."""
    rows = [(one.kb, one.query, document, one.origin) for one in queries for document in one.document_ids]
    before = db.total_changes
    db.executemany("INSERT OR IGNORE INTO golden (kb, query, document_id, origin) VALUES (?, ?, ?, ?)", rows)
    return db.total_changes - before


def read_golden(db: sqlite3.Connection, kb: str) -> list[GoldenQuery]:
    """Golden queries of a kb in the order of their words."""
    found: dict[tuple[str, Origin], list[str]] = defaultdict(list)
    for query, document, origin in db.execute(
        "SELECT query, document_id, origin FROM golden WHERE kb = ? ORDER BY query, document_id", (kb,)
    ):
        found[query, origin].append(document)
    return [GoldenQuery(kb, query, tuple(ids), origin) for (query, origin), ids in found.items()]


def remove_golden(db: sqlite3.Connection, kb: str, query: str | None) -> int:
    """Remove one golden query or all of a kb; how many went."""
    chosen, values = ("kb = ?", [kb]) if query is None else ("kb = ? AND query = ?", [kb, query])
    there = f"SELECT COUNT(DISTINCT query) FROM golden WHERE {chosen}"
    gone = int(db.execute(there, values).fetchone()[0])
    db.execute(f"DELETE FROM golden WHERE {chosen}", values)
    return gone


def document_ids(db: sqlite3.Connection, kb: str) -> list[str]:
    """Documents that were voted on or are asked for."""
    return [
        row[0]
        for row in db.execute(
            "SELECT document_id FROM votes WHERE kb = ? UNION SELECT document_id FROM golden WHERE kb = ? ORDER BY 1",
            (kb, kb),
        )
    ]


def count_documents(db: sqlite3.Connection, ids: Sequence[str]) -> int:
    """Rows that tell of these documents."""
    return sum(
        int(db.execute(f"SELECT COUNT(*) FROM {table} WHERE document_id = ?", (one,)).fetchone()[0])
        for table in TABLES
        for one in ids
    )


def forget_documents(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Remove what tells of these documents; of searches only that they brought them."""
    for table in TABLES:
        db.executemany(f"DELETE FROM {table} WHERE document_id = ?", [(one,) for one in ids])


def erase_documents(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    """The same with the searches that brought them: a query may well say what a document says."""
    brought = "DELETE FROM searches WHERE id IN (SELECT search_id FROM shown WHERE document_id = ?)"
    db.executemany(brought, [(one,) for one in ids])
    forget_documents(db, ids)


def count_kb(db: sqlite3.Connection, kb: str) -> int:
    """Rows of a kb."""
    return sum(
        int(db.execute(f"SELECT COUNT(*) FROM {table} WHERE kb = ?", (kb,)).fetchone()[0])
        for table in ("searches", "votes", "golden")
    )


def forget_kb(db: sqlite3.Connection, kb: str) -> None:
    """Remove all that was asked of a kb."""
    for table in ("searches", "votes", "golden"):
        db.execute(f"DELETE FROM {table} WHERE kb = ?", (kb,))


def count_all(db: sqlite3.Connection) -> int:
    """Rows of a tenant."""
    return sum(
        int(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])
        for table in ("searches", "votes", "golden")
    )
