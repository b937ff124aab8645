"""SQL of the activity file: each function is a piece of work on its connection."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ragstone.core.activity import Feedback, GoldenQuery, LoggedSearch, Origin, Shown, same_query
from ragstone.core.clock import canonical

TABLES = ("votes", "golden", "shown", "turn_documents")
"""Those with rows of a document."""
OF_A_KB = ("searches", "votes", "golden", "turns")
MOST_SEARCHES = 100_000
"""Of a tenant, the newest: as many as are kept, and looked at together."""
MOST_VOTES = 100_000
SEARCH = (
    "moment, kb, query, mode, latency_ms, num_results, top_score, similarity, coverage, missing, tenant_id, "
    "conversation, query_type, sources_queried, sources_returned, database_results_count, "
    "internet_results_count, embedding_time_ms, success, error_message"
)
"""The columns of a search that are written; `activity_schema` has other names for some of them."""


@dataclass(frozen=True, slots=True)
class ToldOf:
    """Documents, passages that answers were made from, and kbs."""

    documents: set[str]
    chunks: set[str]
    kbs: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.documents or self.chunks or self.kbs)


def add_searches(db: sqlite3.Connection, searches: Iterable[LoggedSearch], oldest: datetime) -> None:
    """Remember searches, and forget those of before `oldest` and beyond the newest `MOST_SEARCHES`."""
    for one in searches:
        values = (
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
            one.tenant_id,
            one.conversation,
            one.query_type,
            json.dumps(one.sources_queried),
            json.dumps(one.sources_returned),
            one.database_results_count,
            one.internet_results_count,
            one.embedding_time_ms,
            int(one.success),
            one.error_message,
        )
        marks = ", ".join("?" * len(values))
        cursor = db.execute(f"INSERT INTO searches ({SEARCH}) VALUES ({marks})", values)
        db.executemany(
            "INSERT INTO shown (search_id, rank, chunk_id, document_id, score) VALUES (?, ?, ?, ?, ?)",
            [(cursor.lastrowid, hit.rank, hit.chunk_id, hit.document_id, hit.score) for hit in one.shown],
        )
    db.execute("DELETE FROM searches WHERE moment < ?", (canonical(oldest),))
    keep_newest(db, "searches", ("id",), "id", MOST_SEARCHES)


def keep_newest(db: sqlite3.Connection, table: str, key: Sequence[str], order: str, most: int) -> None:
    """Remove what is more than `most` in a table, the first in order going first."""
    over = int(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]) - most
    if over > 0:
        names = ", ".join(key)
        db.execute(
            f"DELETE FROM {table} WHERE ({names}) IN (SELECT {names} FROM {table} ORDER BY {order} LIMIT ?)",
            (over,),
        )


def read_searches(
    db: sqlite3.Connection,
    kb: str,
    since: datetime | None = None,
    limit: int = MOST_SEARCHES,
    *,
    success: bool | None = None,
    conversation: str | None = None,
) -> list[LoggedSearch]:
    """Searches of a kb with what they brought, newest first: all, those that failed or not, or of one conversation."""
    wanted = {"success": None if success is None else int(success), "conversation": conversation}
    chosen = {name: value for name, value in wanted.items() if value is not None}
    also = "".join(f" AND {name} = ?" for name in chosen)
    own = f"SELECT id, {SEARCH} FROM searches WHERE kb = ? AND moment >= ?{also} ORDER BY id DESC LIMIT ?"
    values = (kb, canonical(since) if since else "", *chosen.values(), limit)
    shown: dict[int, list[Shown]] = defaultdict(list)
    for search_id, *hit in db.execute(
        f"SELECT s.search_id, s.rank, s.chunk_id, s.document_id, s.score FROM ({own}) t "
        "JOIN shown s ON s.search_id = t.id ORDER BY s.search_id, s.rank",
        values,
    ):
        shown[search_id].append(Shown(*hit))
    return [_search(row[1:], tuple(shown[row[0]])) for row in db.execute(own, values)]


def _search(row: tuple[Any, ...], shown: tuple[Shown, ...]) -> LoggedSearch:
    facts = dict(zip(SEARCH.split(", "), row, strict=True))
    return LoggedSearch(
        **facts
        | {
            "moment": datetime.fromisoformat(facts["moment"]),
            "missing": tuple(facts["missing"].split()),
            "sources_queried": tuple(json.loads(facts["sources_queried"])),
            "sources_returned": tuple(json.loads(facts["sources_returned"])),
            "success": bool(facts["success"]),
            "shown": shown,
        }
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
    keep_newest(db, "votes", ("kb", "same_query", "chunk_id", "voter"), "moment", MOST_VOTES)


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


def told_of(db: sqlite3.Connection) -> ToldOf:
    """What a tenant's file tells of. A kb that was only asked for in vain never was one."""
    kbs = "SELECT kb FROM votes UNION SELECT kb FROM golden UNION SELECT kb FROM turns "
    return ToldOf(
        set().union(*(_distinct(db, table, "document_id") for table in TABLES)),
        _distinct(db, "turn_documents", "chunk_id") - {""},
        {row[0] for row in db.execute(kbs + "UNION SELECT kb FROM searches WHERE success = 1")},
    )


def _distinct(db: sqlite3.Connection, table: str, column: str) -> set[str]:
    """From one value of an index to the next: a document may have been shown a hundred thousand times."""
    following = f"(SELECT MIN({column}) FROM {table} WHERE {column} > one)"
    rows = db.execute(
        f"WITH RECURSIVE its(one) AS (SELECT MIN({column}) FROM {table} UNION ALL "
        f"SELECT {following} FROM its WHERE one IS NOT NULL) SELECT one FROM its WHERE one IS NOT NULL"
    )
    return {row[0] for row in rows}


def forget_gone(db: sqlite3.Connection, gone: ToldOf) -> None:
    """Remove what tells of documents, of passages and of kbs that are gone.

    A kb without a document that is left was deleted; another one has a new name, under which it will be found.
    """
    forget_documents(db, sorted(gone.documents))
    _empty_answers(db, "chunk_id", sorted(gone.chunks))
    for kb in sorted(gone.kbs):
        left = db.execute(
            "SELECT 1 FROM votes WHERE kb = ?1 UNION ALL SELECT 1 FROM golden WHERE kb = ?1 UNION ALL "
            "SELECT 1 FROM searches s JOIN shown h ON h.search_id = s.id WHERE s.kb = ?1 UNION ALL "
            "SELECT 1 FROM turns t JOIN turn_documents d ON d.turn_id = t.id WHERE t.kb = ?1 LIMIT 1",
            (kb,),
        ).fetchone()
        if left is None:
            forget_kb(db, kb)


def count_documents(db: sqlite3.Connection, ids: Sequence[str]) -> int:
    """Rows that tell of these documents."""
    return sum(
        int(db.execute(f"SELECT COUNT(*) FROM {table} WHERE document_id = ?", (one,)).fetchone()[0])
        for table in TABLES
        for one in ids
    )


def forget_documents(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Remove what tells of these documents: votes, golden queries and answers made from them.

    Of searches and questions only that they brought them goes.
    """
    _empty_answers(db, "document_id", ids)
    for table in TABLES:
        db.executemany(f"DELETE FROM {table} WHERE document_id = ?", [(one,) for one in ids])


def _empty_answers(db: sqlite3.Connection, column: str, ids: Iterable[str]) -> None:
    for one in ids:
        turns = [
            row[0] for row in db.execute(f"SELECT turn_id FROM turn_documents WHERE {column} = ?", (one,))
        ]
        db.executemany("UPDATE turns SET answer = '' WHERE id = ?", [(turn,) for turn in turns])
        db.executemany(
            "UPDATE turn_documents SET chunk_id = '' WHERE turn_id = ?", [(turn,) for turn in turns]
        )


def erase_documents(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    """The same with the searches and questions that brought them: a query may well say what a document says."""
    for table, brought in (("searches", "search_id FROM shown"), ("turns", "turn_id FROM turn_documents")):
        gone = f"DELETE FROM {table} WHERE id IN (SELECT {brought} WHERE document_id = ?)"
        db.executemany(gone, [(one,) for one in ids])
    forget_documents(db, ids)


def count_kb(db: sqlite3.Connection, kb: str) -> int:
    """Rows of a kb."""
    return sum(
        int(db.execute(f"SELECT COUNT(*) FROM {table} WHERE kb = ?", (kb,)).fetchone()[0])
        for table in OF_A_KB
    )


def forget_kb(db: sqlite3.Connection, kb: str) -> None:
    """Remove all that was asked of a kb."""
    for table in OF_A_KB:
        db.execute(f"DELETE FROM {table} WHERE kb = ?", (kb,))


def count_all(db: sqlite3.Connection) -> int:
    """Rows of a tenant."""
    return sum(int(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]) for table in OF_A_KB)
