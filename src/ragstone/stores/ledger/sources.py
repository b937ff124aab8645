"""What of a source could not be taken in: what its last run did not read, and what no document could be made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from ragstone.core.clock import canonical, now, parse_moment
from ragstone.core.errors import InputError, LeaseLost, NotFoundError
from ragstone.core.ids import opaque_id
from ragstone.core.jobs import MOST_NAMED, NEAR_DUPLICATE, SourceFailures, SourceRecord
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Failure, Json, KnowledgeBase, Metadata
from ragstone.stores.sql.database import Connection, marks

ADVICE = ("hint", "remedy")
OF_SOURCE = "= (SELECT kb_id, name FROM sources WHERE tenant_id = ? AND id = ?)"
LAST = (
    "NOT EXISTS (SELECT 1 FROM jobs n WHERE n.tenant_id = j.tenant_id AND n.document_id = j.document_id "
    "AND n.seq > j.seq)"
)
FAILED = (
    "FROM jobs j WHERE j.tenant_id = ? AND j.kind = 'document' AND j.state = 'failed' AND j.error_code <> ? "
    f"AND (j.kb_id, j.source) {OF_SOURCE} AND {LAST}"
)
TAKEN_IN = (
    f"SELECT 1 FROM documents d WHERE d.tenant_id = ? AND (d.kb_id, d.source) {OF_SOURCE} AND (d.version > 0 OR "
    "EXISTS (SELECT 1 FROM jobs w WHERE w.tenant_id = d.tenant_id AND w.document_id = d.id "
    "AND w.state IN ('pending', 'running'))) AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.tenant_id = d.tenant_id "
    f"AND j.document_id = d.id AND j.state = 'failed' AND {LAST}) LIMIT 1"
)


def to_stored(unread: SourceFailures) -> dict[str, Any]:
    """Return what a run could not read, in the form that is written down."""
    stored = asdict(unread)
    for failure, written in zip(unread.first, stored["first"], strict=True):
        del written["remedy"]
        if failure.remedy:
            written["remedy"] = failure.remedy.to_json()
    return stored


def unread_of(stored: Mapping[str, Any]) -> SourceFailures:
    """What a run could not read, as it was written down."""
    first = tuple(_failure(**failure) for failure in stored.get("first", ()))
    return SourceFailures(stored.get("count", 0), first, stored.get("total", False))


def with_failed_documents(connection: Connection, tenant_id: str, source: SourceRecord) -> SourceRecord:
    """The source, its documents whose last job failed among what could not be taken in."""
    unread = source.source_failures
    # What could not even be read this time is not told twice.
    told = [failure.uri for failure in unread.first]
    which = f"{FAILED} AND j.uri NOT IN ({marks(told)})" if told else FAILED
    given = (tenant_id, NEAR_DUPLICATE, tenant_id, source.id, *told)
    failed = connection.execute(f"SELECT count(*) {which}", given).fetchone()[0]
    count = unread.count + failed
    if not count:
        return source
    rows = connection.execute(
        f"SELECT j.uri, j.error_code, j.error, j.progress {which} ORDER BY j.seq LIMIT ?", (*given, MOST_NAMED)
    )
    lost = [
        _failure(uri, code, error, **{key: value for key, value in json.loads(how_far).items() if key in ADVICE})
        for uri, code, error, how_far in rows
    ]
    first = (*unread.first, *lost)[:MOST_NAMED]
    nothing = not connection.execute(TAKEN_IN, (tenant_id, tenant_id, source.id)).fetchone()
    return replace(source, source_failures=SourceFailures(count, first, unread.total or nothing))


def _failure(uri: str, code: str, error: str, hint: str = "", remedy: Mapping[str, str] | None = None) -> Failure:
    return Failure(uri, code, error, hint, Remedy.from_json(remedy))


SOURCE = (
    "SELECT s.id, k.name, s.name, s.kind, s.config, s.schedule, s.cursor, s.paused, s.next_run_at, s.last_run_at, "
    "s.last_error, s.created_at, s.unread FROM sources s "
    "JOIN knowledge_bases k ON k.tenant_id = s.tenant_id AND k.id = s.kb_id WHERE s.tenant_id = ?"
)


def add_source(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    name: str,
    kind: str,
    config: Metadata,
    schedule: str,
    next_run_at: datetime | None,
) -> SourceRecord:
    """Write a source down; a name is taken once per kb."""
    if read_source(connection, tenant_id, kb.name, name):
        raise InputError(
            f"knowledge base '{kb.name}' already has a source '{name}'",
            hint="choose another name, or",
            remedy=Remedy(Action.REMOVE_SOURCE, source=name),
        )
    connection.execute(
        "INSERT INTO sources (id, tenant_id, kb_id, name, kind, config, schedule, cursor, paused, next_run_at, "
        "last_error, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'null', 0, ?, '', ?)",
        (
            *(opaque_id(), tenant_id, kb.id, name, kind, connection.dialect.to_json(dict(config)), schedule),
            *(canonical(next_run_at) if next_run_at else None, canonical(now())),
        ),
    )
    return _existing(connection, tenant_id, kb.name, name)


def read_source(connection: Connection, tenant_id: str, kb: str, name: str) -> SourceRecord | None:
    row = connection.execute(f"{SOURCE} AND k.name = ? AND s.name = ?", (tenant_id, kb, name)).fetchone()
    return with_failed_documents(connection, tenant_id, _source(row)) if row else None


def read_sources(connection: Connection, tenant_id: str, kb: str | None = None) -> list[SourceRecord]:
    """In order of kb and name."""
    chosen, given = (" AND k.name = ?", (kb,)) if kb is not None else ("", ())
    rows = connection.execute(f"{SOURCE}{chosen} ORDER BY k.name, s.name", (tenant_id, *given)).fetchall()
    return [with_failed_documents(connection, tenant_id, _source(row)) for row in rows]


def due_sources(connection: Connection, tenant_id: str, moment: datetime) -> list[SourceRecord]:
    """Those whose time has come and that are not paused."""
    rows = connection.execute(
        f"{SOURCE} AND s.paused = 0 AND s.next_run_at <= ? ORDER BY s.next_run_at", (tenant_id, canonical(moment))
    )
    return [_source(row) for row in rows]


def advance(connection: Connection, tenant_id: str, source_id: str, cursor: Json) -> None:
    """Remember how far a source has been read, in the transaction that takes in what was read."""
    found = connection.execute(
        "UPDATE sources SET cursor = ? WHERE tenant_id = ? AND id = ?",
        (connection.dialect.to_json(cursor), tenant_id, source_id),
    )
    if not found.rowcount:
        raise LeaseLost("the source was removed while it was being read")


def ran(
    connection: Connection,
    tenant_id: str,
    source_id: str,
    error: str,
    next_run_at: datetime | None,
    unread: SourceFailures,
) -> None:
    """A run is over: when the next one is, what ended it if something did, and what it could not read."""
    connection.execute(
        "UPDATE sources SET last_run_at = ?, last_error = ?, next_run_at = ?, unread = ? "
        "WHERE tenant_id = ? AND id = ?",
        (
            *(canonical(now()), error, canonical(next_run_at) if next_run_at else None),
            *(connection.dialect.to_json(to_stored(unread)), tenant_id, source_id),
        ),
    )


def reschedule(
    connection: Connection, tenant_id: str, source_id: str, due: datetime | None, next_run_at: datetime | None
) -> bool:
    """Say when the next run is; False when somebody has, since this one was due."""
    found = connection.execute(
        "UPDATE sources SET next_run_at = ? WHERE tenant_id = ? AND id = ? AND next_run_at = ?",
        (*(canonical(next_run_at) if next_run_at else None, tenant_id, source_id), canonical(due) if due else None),
    )
    return bool(found.rowcount)


def reconfigure(connection: Connection, tenant_id: str, source_id: str, config: Metadata) -> None:
    connection.execute(
        "UPDATE sources SET config = ? WHERE tenant_id = ? AND id = ?",
        (json.dumps(dict(config), default=str), tenant_id, source_id),
    )


def pause(connection: Connection, tenant_id: str, source_id: str, paused: bool) -> None:
    connection.execute(
        "UPDATE sources SET paused = ? WHERE tenant_id = ? AND id = ?", (int(paused), tenant_id, source_id)
    )


def remove_source(connection: Connection, tenant_id: str, source_id: str) -> None:
    """Remove a source and cancel its jobs: a worker that reads it finds its ticket void."""
    connection.execute(
        "UPDATE jobs SET state = 'cancelled', token = token + 1, error_code = 'cancelled', "
        "error = 'its source was removed', finished_at = ? WHERE tenant_id = ? AND state IN ('pending', 'running') "
        "AND (kb_id, source) = (SELECT kb_id, name FROM sources WHERE tenant_id = ? AND id = ?)",
        (canonical(now()), tenant_id, tenant_id, source_id),
    )
    connection.execute("DELETE FROM sources WHERE tenant_id = ? AND id = ?", (tenant_id, source_id))


def _existing(connection: Connection, tenant_id: str, kb: str, name: str) -> SourceRecord:
    found = read_source(connection, tenant_id, kb, name)
    if found is None:
        raise NotFoundError(f"there is no source '{name}'", remedy=Remedy(Action.LIST_SOURCES))
    return found


def _json(column: Any) -> Json:
    # SQLite takes a column of type JSON for a number if it looks like one.
    return json.loads(column) if isinstance(column, str) else column


def _source(row: Sequence[Any]) -> SourceRecord:
    identity, kb, name, kind, config, schedule, cursor, paused, following, last, error, made, unread = row
    created = parse_moment(made)
    assert created is not None
    return SourceRecord(
        *(identity, kb, name, kind, json.loads(config), schedule, _json(cursor), bool(paused)),
        *(parse_moment(following) if following else None, parse_moment(last) if last else None),
        *(error, created),
        source_failures=unread_of(json.loads(unread)),
    )
