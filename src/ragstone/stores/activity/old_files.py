"""Files in which earlier versions kept activity and web results: their rows move into the ledger, then they go.

Such a file belonged to one machine and knew kbs by name. It gets an id of its own before anything is taken from it, and
the ledger remembers that id in the transaction that takes the rows over: killed at any point, it starts over and takes
nothing twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ragstone.core.activity import GoldenQuery, LoggedSearch, PassageVote, Shown, Turn
from ragstone.core.clock import canonical, now
from ragstone.core.errors import RagstoneError, StoreError
from ragstone.core.ids import check_name, opaque_id
from ragstone.stores.activity.conversations import put_turn
from ragstone.stores.activity.feedback import put_golden, put_votes
from ragstone.stores.activity.retrieval_log import put_searches
from ragstone.stores.ledger.documents import live_chunks
from ragstone.stores.sql.database import Connection

logger = logging.getLogger(__name__)
SEARCHES = 500
"""Taken over in one go."""
WRITE_SECONDS = 60
Rows = Callable[[Connection, str], None]
Write = Callable[[Rows], Awaitable[None]]
"""Runs work as a transaction for the tenant at hand."""


class OldFiles:
    """The files of a data folder that are not taken over yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "activity"
        self._web = folder / "web-results.db"

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing for any tenant."""
        return not self._folder.is_dir() and not self._web.exists()

    async def take_over(self, tenant_id: str, write: Write, write_log: Write | None = None) -> None:
        """Move a tenant's rows; `write_log` is for a log that is not in the ledger. A failure is logged, not raised."""
        path = self._path(tenant_id)
        try:
            if path.exists():
                await write(partial(_take_activity, path))
                if write_log:
                    await write_log(partial(_take_log, path))
                await asyncio.to_thread(_remove, path)
                logger.info("took over %s/%s", path.parent.name, path.name)
            if self._web.exists():
                await write(partial(_take_web_results, self._web))
                await asyncio.to_thread(_drop_web_results, self._web, tenant_id)
            await asyncio.to_thread(self._remove_folder)
        except (RagstoneError, sqlite3.Error, OSError) as error:
            logger.warning("cannot take over activity of an earlier version: %s; the next start tries again", error)

    async def remove(self, tenant_id: str) -> None:
        """Remove what is left of a tenant that is deleted."""
        await asyncio.to_thread(_remove, self._path(tenant_id))
        if self._web.exists():
            await asyncio.to_thread(_drop_web_results, self._web, tenant_id)

    def _path(self, tenant_id: str) -> Path:
        return self._folder / f"{check_name(tenant_id, 'tenant id')}.db"

    def _remove_folder(self) -> None:
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()


def _take_activity(path: Path, connection: Connection, tenant_id: str) -> None:
    with _open(path) as old:
        if not _is_first(old, connection, tenant_id):
            return
        for kb, kb_id in _kbs(connection, tenant_id).items():
            _take_turns(old, connection, tenant_id, kb, kb_id)
            put_votes(connection, tenant_id, kb_id, _votes(old, kb))
            put_golden(connection, tenant_id, kb_id, _golden(old, kb))
        if connection.dialect.has_log:
            _take_searches(old, connection, tenant_id)


def _take_log(path: Path, connection: Connection, tenant_id: str) -> None:
    with _open(path) as old:
        if _is_first(old, connection, tenant_id):
            _take_searches(old, connection, tenant_id)


def _take_turns(old: sqlite3.Connection, connection: Connection, tenant_id: str, kb: str, kb_id: int) -> None:
    """Take turns over; an answer whose documents are not as they were stays behind."""
    for turn in _rows(old, "turns", "kb = ? ORDER BY id", kb):
        read = list(_rows(old, "turn_documents", "turn_id = ?", turn["id"]))
        chunks = {row["chunk_id"] for row in read} - {""}
        current = chunks <= live_chunks(connection, tenant_id, sorted(chunks))
        moment, answer = datetime.fromisoformat(turn["moment"]), turn["answer"] if current else ""
        documents = tuple(row["document_id"] for row in read)
        put_turn(
            *(connection, tenant_id, kb_id), Turn(moment, kb, turn["conversation"], turn["question"], answer, documents)
        )


def _take_searches(old: sqlite3.Connection, connection: Connection, tenant_id: str) -> None:
    waiting: list[LoggedSearch] = []
    for row in _rows(old, "searches", "1 = 1 ORDER BY id"):
        waiting.append(_search(row, tenant_id, tuple(_read_shown(old, row["id"]))))
        if len(waiting) == SEARCHES:
            put_searches(connection, tenant_id, waiting)
            waiting.clear()
    put_searches(connection, tenant_id, waiting)


def _take_web_results(path: Path, connection: Connection, tenant_id: str) -> None:
    names = (
        *("query_hash", "query_text", "results", "result_count"),
        *("search_provider", "search_timestamp", "expires_at"),
    )
    with _open(path) as old:
        connection.executemany(
            f"INSERT INTO web_results (tenant_id, {', '.join(names)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            [
                (tenant_id, *(row[name] for name in names))
                for row in _rows(old, "internet_search_cache", "tenant_id = ?", tenant_id)
            ],
        )


def _votes(old: sqlite3.Connection, kb: str) -> Iterator[PassageVote]:
    for row in _rows(old, "votes", "kb = ?", kb):
        moment = datetime.fromisoformat(row["moment"])
        yield PassageVote(moment, kb, row["query"], row["chunk_id"], row["document_id"], row["vote"], row["voter"])


def _golden(old: sqlite3.Connection, kb: str) -> Iterator[GoldenQuery]:
    for row in _rows(old, "golden", "kb = ?", kb):
        yield GoldenQuery(kb, row["query"], (row["document_id"],), row["origin"])


def _read_shown(old: sqlite3.Connection, search_id: int) -> Iterator[Shown]:
    for row in _rows(old, "shown", "search_id = ? ORDER BY rank", search_id):
        yield Shown(row["rank"], row["chunk_id"], row["document_id"], row["score"])


def _search(row: dict[str, Any], tenant_id: str, shown: tuple[Shown, ...]) -> LoggedSearch:
    """Return a search as it is logged now; the first version of the file did not say who was asked."""
    returned = json.dumps(["documents"] if row["num_results"] else [])
    return LoggedSearch(
        moment=datetime.fromisoformat(row["moment"]),
        kb=row["kb"],
        query=row["query"],
        mode=row["mode"],
        latency_ms=row["latency_ms"],
        num_results=row["num_results"],
        top_score=row["top_score"],
        similarity=row["similarity"],
        coverage=row["coverage"],
        missing=tuple(row["missing"].split()),
        shown=shown,
        tenant_id=tenant_id,
        conversation=row.get("conversation", ""),
        query_type=row.get("query_type", ""),
        sources_queried=tuple(json.loads(row.get("sources_queried", '["documents"]'))),
        sources_returned=tuple(json.loads(row.get("sources_returned", returned))),
        database_results_count=row.get("database_results_count", 0),
        internet_results_count=row.get("internet_results_count", 0),
        embedding_time_ms=row.get("embedding_time_ms", 0.0),
        success=bool(row.get("success", 1)),
        error_message=row.get("error_message", ""),
    )


def _kbs(connection: Connection, tenant_id: str) -> dict[str, int]:
    found = connection.execute("SELECT name, id FROM knowledge_bases WHERE tenant_id = ?", (tenant_id,))
    return dict(found.fetchall())


def _is_first(old: sqlite3.Connection, connection: Connection, tenant_id: str) -> bool:
    """Remember that this file is taken over; return False if it was before."""
    old.execute("BEGIN IMMEDIATE")
    old.execute("CREATE TABLE IF NOT EXISTS taken_over (id TEXT NOT NULL)")
    old.execute("INSERT INTO taken_over SELECT ? WHERE NOT EXISTS (SELECT 1 FROM taken_over)", (opaque_id(),))
    old.execute("COMMIT")
    (file_id,) = old.execute("SELECT id FROM taken_over").fetchone()
    inserted = connection.execute(
        "INSERT INTO imported_files (tenant_id, id, moment) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (tenant_id, file_id, canonical(now())),
    )
    return inserted.rowcount == 1


def _rows(old: sqlite3.Connection, table: str, which: str, *values: object) -> Iterator[dict[str, Any]]:
    """Return rows with the columns that the file's version has; none if it has no such table."""
    known = old.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    if known.fetchone() is None:
        return
    found = old.execute(f"SELECT * FROM {table} WHERE {which}", values)
    names = [column[0] for column in found.description]
    for row in found:
        yield dict(zip(names, row, strict=True))


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        where = f"{path.resolve().as_uri()}?mode=rw"
        with closing(sqlite3.connect(where, WRITE_SECONDS, isolation_level=None, uri=True)) as old:
            old.execute("PRAGMA secure_delete = ON")
            yield old
    except sqlite3.Error as error:
        raise StoreError(f"{path.parent.name}/{path.name} cannot be read: {error}") from error


def _drop_web_results(path: Path, tenant_id: str) -> None:
    with _open(path) as old:
        old.execute("DELETE FROM internet_search_cache WHERE tenant_id = ?", (tenant_id,))
        left = old.execute("SELECT 1 FROM internet_search_cache LIMIT 1").fetchone()
    if left is None:
        _remove(path)


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
