"""The runs of a tenant's article pipeline, each with its last checkpoint."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ragstone.core.agents.articles import ArticleRun, GraphName, RunStatus, WrittenArticle
from ragstone.core.clock import canonical, now
from ragstone.core.errors import LeaseLost, QuotaExceeded, unknown_kb
from ragstone.core.ids import opaque_id
from ragstone.core.types import Json
from ragstone.schemas.agents.articles import ArticleSchema
from ragstone.stores.activity.removal import remove_old_runs, unclaimed_runs
from ragstone.stores.ledger.documents import read_kb
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.sql.database import Connection

MOST_RUNS = 200
"""Of a tenant, the newest and those under way."""
IDLE_AFTER = timedelta(hours=1)
"""A run that no job is to write, and that has saved nothing for so long, has been given up."""
COLUMNS = "r.id, k.name, r.graph, r.topic, r.status, r.error, r.created_at, r.updated_at"
RUNS = (
    "FROM article_runs r JOIN knowledge_bases k ON k.tenant_id = r.tenant_id AND k.id = r.kb_id WHERE r.tenant_id = ?"
)


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run as it travels from ledger to ledger and into archives: with its last checkpoint and its article as JSON."""

    id: str
    kb: str
    graph: GraphName
    topic: str
    status: RunStatus
    error: str
    created_at: str
    updated_at: str
    checkpoint: Json
    article: Json


class ArticleRunRepository(TenantRepository):
    """Keeps runs. A worker that takes one up gets a token; what an earlier holder writes is refused."""

    @in_transaction
    def add(
        self, connection: Connection, tenant_id: str, kb: str, graph: GraphName, topic: str, oldest: datetime
    ) -> str:
        """Add a run and return its id; runs from before `oldest` go, and the oldest of too many."""
        found = read_kb(connection, tenant_id, kb)
        if found is None:
            raise unknown_kb(kb, self._tenant)
        _make_room(connection, tenant_id, oldest)
        moment, run_id = canonical(now()), opaque_id()
        connection.execute(
            "INSERT INTO article_runs (id, tenant_id, kb_id, graph, topic, status, error, token, created_at, "
            "updated_at) VALUES (?, ?, ?, ?, ?, 'running', '', 0, ?, ?)",
            (run_id, tenant_id, found.id, graph, topic, moment, moment),
        )
        return run_id

    @in_snapshot_or(lambda: None)
    def get(self, connection: Connection, tenant_id: str, run_id: str) -> ArticleRun | None:
        """Return a run with its article; None when there is none of that id."""
        row = connection.execute(f"SELECT {COLUMNS}, r.result {RUNS} AND r.id = ?", (tenant_id, run_id)).fetchone()
        if row is None:
            return None
        packed = row[-1]
        article = None if packed is None else ArticleSchema.read_as(WrittenArticle, _unpack(packed))
        return _read_run(row[:-1], article)

    @in_snapshot_or(list)
    def list(self, connection: Connection, tenant_id: str, kb: str, limit: int) -> list[ArticleRun]:
        """Return the runs on a kb without their articles, newest first."""
        rows = connection.execute(
            f"SELECT {COLUMNS} {RUNS} AND k.name = ? ORDER BY r.created_at DESC, r.id LIMIT ?", (tenant_id, kb, limit)
        )
        return [_read_run(row) for row in rows]

    @in_transaction
    def take(self, connection: Connection, tenant_id: str, run_id: str) -> int:
        """Make the caller the one who goes on with a run; return the token of its writes."""
        row = connection.execute(
            "UPDATE article_runs SET token = token + 1, status = 'running', error = '', updated_at = ? "
            "WHERE tenant_id = ? AND id = ? RETURNING token",
            (canonical(now()), tenant_id, run_id),
        ).fetchone()
        if row is None:
            raise _taken(run_id)
        return int(row[0])

    @in_snapshot_or(lambda: None)
    def checkpoint(self, connection: Connection, tenant_id: str, run_id: str) -> Json:
        """Return the last checkpoint of a run; None before the first."""
        row = connection.execute(
            "SELECT checkpoint FROM article_runs WHERE tenant_id = ? AND id = ?", (tenant_id, run_id)
        ).fetchone()
        return None if row is None or row[0] is None else _unpack(row[0])

    @in_transaction
    def save(self, connection: Connection, tenant_id: str, run_id: str, token: int, checkpoint: Json) -> None:
        """Replace the checkpoint of a run."""
        self._update(connection, tenant_id, run_id, token, "checkpoint = ?", _pack(checkpoint))

    @in_transaction
    def finish(
        self,
        connection: Connection,
        tenant_id: str,
        run_id: str,
        token: int,
        article: WrittenArticle | None,
        error: str = "",
    ) -> None:
        """Write down what a run came to: its article, or why it failed."""
        status: RunStatus = "completed" if article else "failed"
        packed = _pack(ArticleSchema.of(article).as_json()) if article else None
        self._update(connection, tenant_id, run_id, token, "status = ?, error = ?, result = ?", status, error, packed)

    def _update(
        self, connection: Connection, tenant_id: str, run_id: str, token: int, change: str, *values: Any
    ) -> None:
        done = connection.execute(
            f"UPDATE article_runs SET {change}, updated_at = ? WHERE tenant_id = ? AND id = ? AND token = ?",
            (*values, canonical(now()), tenant_id, run_id, token),
        )
        if not done.rowcount:
            raise _taken(run_id)


def read_runs(connection: Connection, tenant_id: str, after: str, limit: int) -> Sequence[RunSnapshot]:
    """Return whole runs behind an id, in order of id."""
    rows = connection.execute(
        f"SELECT {COLUMNS}, r.checkpoint, r.result {RUNS} AND r.id > ? ORDER BY r.id LIMIT ?", (tenant_id, after, limit)
    )
    return [
        RunSnapshot(*row[:-2], *(None if packed is None else _unpack(packed) for packed in row[-2:])) for row in rows
    ]


def put_run(connection: Connection, tenant_id: str, run: RunSnapshot) -> None:
    """Write a run over the one with its id; one whose kb is gone has nothing to go on with and is left out."""
    kb = read_kb(connection, tenant_id, run.kb)
    if kb is None:
        return
    connection.execute("DELETE FROM article_runs WHERE tenant_id = ? AND id = ?", (tenant_id, run.id))
    packed = [None if value is None else _pack(value) for value in (run.checkpoint, run.article)]
    facts = (kb.id, run.graph, run.topic, run.status, run.error, *packed, run.created_at, run.updated_at)
    connection.execute(
        "INSERT INTO article_runs (id, tenant_id, token, kb_id, graph, topic, status, error, checkpoint, result, "
        "created_at, updated_at) VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (run.id, tenant_id, *facts),
    )


def _make_room(connection: Connection, tenant_id: str, oldest: datetime) -> None:
    """Remove runs that are too old or too many, but none under way; `QuotaExceeded` if there is no room for one."""
    remove_old_runs(connection, tenant_id, oldest)
    counted = "SELECT count(*) FROM article_runs WHERE tenant_id = ?"
    over = int(connection.execute(counted, (tenant_id,)).fetchone()[0]) + 1 - MOST_RUNS
    if over <= 0:
        return
    removed = connection.execute(
        f"DELETE FROM article_runs WHERE id IN (SELECT id FROM article_runs WHERE {unclaimed_runs(connection)} "
        "AND (status <> 'running' OR updated_at <= ?) ORDER BY updated_at, id LIMIT ?)",
        (tenant_id, tenant_id, canonical(now() - IDLE_AFTER), over),
    ).rowcount
    if removed < over:
        raise QuotaExceeded(
            f"{MOST_RUNS} articles are being written or wait already",
            hint="wait until some of them are done",
            retry_after=60,
        )


def _taken(run_id: str) -> LeaseLost:
    return LeaseLost(f"run {run_id} was removed, or another process goes on with it")


def _read_run(row: Any, article: WrittenArticle | None = None) -> ArticleRun:
    run_id, kb, graph, topic, status, error, created, updated = row
    began, changed = datetime.fromisoformat(created), datetime.fromisoformat(updated)
    return ArticleRun(run_id, kb, graph, topic, status, error, began, changed, article)


def _pack(value: Json) -> bytes:
    return zlib.compress(json.dumps(value).encode(), 1)


def _unpack(packed: bytes) -> Any:
    return json.loads(zlib.decompress(bytes(packed)))
