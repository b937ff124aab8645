"""Jobs in a tenant's rows: what a transaction does to them and what the queue shares with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from ragstone.core.clock import ReadTime, canonical, now, parse_moment
from ragstone.core.errors import LeaseLost
from ragstone.core.ids import opaque_id
from ragstone.core.jobs import ACTIVE, Job, JobProgress, JobState, NewJob, Ticket, read_of
from ragstone.core.remedies import Remedy
from ragstone.core.types import Json, KnowledgeBase, Metadata
from ragstone.stores.ledger.documents import has_document
from ragstone.stores.ledger.originals import held_condition, let_go
from ragstone.stores.sql.database import Connection, in_parts, marks, next_number

_TOLD = tuple(field.name for field in fields(JobProgress) if field.name != "remedy")
KEPT_JOBS = 10_000
"""The number of ended jobs that are remembered, besides those whose originals are kept."""
Weigh = Callable[[str, str], int]
"""The bytes of an original, by document id and name."""
OF_SOURCE = " AND source = ? AND kind <> 'task'"
"""Narrows jobs of a kb to those of a source, which may have the name of a task."""
PART_KEY = "document_id || ' ' || made_from || ' ' || part"
_UNSTORED = (
    "FROM checkpoints WHERE tenant_id = ? AND NOT EXISTS "
    "(SELECT 1 FROM documents d WHERE d.tenant_id = checkpoints.tenant_id AND d.id = checkpoints.document_id)"
)
_LAST_OF_NONE = (
    "SELECT 1 FROM documents d WHERE d.tenant_id = jobs.tenant_id AND d.id = jobs.document_id AND d.version = 0 "
    "AND NOT EXISTS (SELECT 1 FROM jobs n WHERE n.tenant_id = d.tenant_id AND n.document_id = d.id "
    "AND n.seq > jobs.seq)"
)
"""A document that is not live and has no later job."""
JOB = (
    "SELECT j.id, j.kind, k.name, j.state, j.priority, j.document_id, j.source, j.external_id, j.uri, "
    "j.content_hash, j.size, j.facts, j.progress, j.attempts, j.token, j.worker, j.error_code, j.error, j.created_at, "
    "j.started_at, j.finished_at FROM jobs j "
    "JOIN knowledge_bases k ON k.tenant_id = j.tenant_id AND k.id = j.kb_id WHERE j.tenant_id = ?"
)


def enqueue(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, job: NewJob, weigh: Weigh = lambda _document_id, _name: 0
) -> Job:
    """Queue a job. One that already waits for the same document or source takes over what is new."""
    waiting = _active(connection, tenant_id, kb, job)
    facts = connection.dialect.to_json(dict(job.facts))
    earlier = waiting is not None and read_of(job.facts).precedes(waiting.read)
    if waiting and _same(waiting, job, json.loads(facts)):
        read = {} if earlier or "read" not in job.facts else {"read": job.facts["read"]}
        return _hasten(connection, tenant_id, waiting, job, {**waiting.facts, **read})
    if waiting and job.kind == "sync":
        # The one that reads more does what both were to do.
        return _hasten(connection, tenant_id, waiting, job, {"afresh": True})
    if job.kind == "reembed" and (there := waiting or _turn(connection, tenant_id, kb, job)):
        return there
    if waiting and job.kind == "document":
        if earlier:
            return waiting  # who brings this has read it first, and comes last
        supersede(connection, tenant_id, {waiting.id: None})
    if job.kind == "document":
        _announce(connection, tenant_id, kb, job)
    identity = opaque_id()
    connection.execute(
        "INSERT INTO jobs (id, tenant_id, kb_id, kind, state, priority, document_id, source, external_id, uri, "
        "content_hash, size, facts, progress, notify, attempts, token, worker, boot, lease_until, not_before, "
        "error_code, error, created_at, stored) "
        "VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, '{}', ?, 0, 0, '', '', 0, 0, '', '', ?, ?)",
        (
            *(identity, tenant_id, kb.id, job.kind, int(job.priority), job.document_id, job.source),
            *(job.external_id, job.uri, job.content_hash, job.size, facts),
            *(int(job.notify), canonical(now()), _weight(job, weigh)),
        ),
    )
    let_go(connection, tenant_id, [job.document_id])
    _forget_old(connection, tenant_id)
    return _by_id(connection, tenant_id, identity)


def complete_job(
    connection: Connection, tenant_id: str, ticket: Ticket, progress: JobProgress, message: str = ""
) -> None:
    """End a job well, if the ticket is still good: `LeaseLost` undoes the transaction it was to commit with."""
    document_id = complete_held(connection, tenant_id, ticket, progress, message)
    if document_id is None:
        raise _lease_error(ticket)
    let_go(connection, tenant_id, [document_id])


def complete_held(
    connection: Connection, tenant_id: str, ticket: Ticket, progress: JobProgress, message: str
) -> str | None:
    """End a job well; its document's id. None, and nothing is done, when the ticket is void."""
    moment = canonical(now())
    row = connection.execute(
        "UPDATE jobs SET state = 'completed', token = token + 1, progress = ?, error_code = '', error = '', "
        "finished_at = ? WHERE tenant_id = ? AND id = ? AND token = ? AND state = 'running' "
        "RETURNING notify, document_id",
        (write_progress(connection, progress), moment, tenant_id, *ticket),
    ).fetchone()
    if row is None:
        return None
    if row[0]:
        _notice(connection, tenant_id, ticket.job_id, message, moment)
    return str(row[1])


def holds(connection: Connection, tenant_id: str, ticket: Ticket) -> bool:
    """Return whether the ticket is still valid."""
    return ticket in holding(connection, tenant_id, [ticket])


def holding(connection: Connection, tenant_id: str, tickets: Sequence[Ticket]) -> set[Ticket]:
    """Return those of the tickets that are still good."""
    good: set[Ticket] = set()
    for part in in_parts([ticket.job_id for ticket in tickets]):
        rows = connection.execute(
            f"SELECT id, token FROM jobs WHERE tenant_id = ? AND state = 'running' AND id IN ({marks(part)})",
            (tenant_id, *part),
        )
        good.update(Ticket(*row) for row in rows)
    return good.intersection(tickets)


def forget_document(connection: Connection, tenant_id: str, document_id: str) -> None:
    """Remove every trace of a document from the queue; a worker that still has it cannot finish."""
    for table in ("jobs", "notices", "checkpoints"):
        connection.execute(f"DELETE FROM {table} WHERE tenant_id = ? AND document_id = ?", (tenant_id, document_id))


def list_unstored(connection: Connection, tenant_id: str) -> list[str]:
    """Return the keys of parts of documents that were never stored."""
    return [key for (key,) in connection.execute(f"SELECT {PART_KEY} {_UNSTORED}", (tenant_id,))]


def forget_unstored(connection: Connection, tenant_id: str) -> None:
    """Remove those parts: nothing says which deletion they belong to, so they go with any."""
    connection.execute(f"DELETE {_UNSTORED}", (tenant_id,))


def require_held(connection: Connection, tenant_id: str, ticket: Ticket) -> None:
    if not holds(connection, tenant_id, ticket):
        raise _lease_error(ticket)


def _lease_error(ticket: Ticket) -> LeaseLost:
    return LeaseLost(f"job {ticket.job_id} is another worker's by now, or was cancelled")


def end_job(
    connection: Connection,
    tenant_id: str,
    job_id: str,
    state: JobState,
    code: str,
    error: str,
    hint: str = "",
    remedy: Remedy | None = None,
) -> None:
    """End a job that did not complete; the ticket of its holder becomes void."""
    moment = canonical(now())
    connection.execute(
        "UPDATE jobs SET state = ?, token = token + 1, error_code = ?, error = ?, finished_at = ? "
        "WHERE tenant_id = ? AND id = ?",
        (state, code, error, moment, tenant_id, job_id),
    )
    advise(connection, tenant_id, job_id, hint, remedy)
    if state == "failed":
        _notice(connection, tenant_id, job_id, error, moment)


def advise(connection: Connection, tenant_id: str, job_id: str, hint: str, remedy: Remedy | None) -> None:
    """Keep what to do about an error in place of what helped against an earlier one."""
    progress = _by_id(connection, tenant_id, job_id).progress
    if (progress.hint, progress.remedy) != (hint, remedy):
        connection.execute(
            "UPDATE jobs SET progress = ? WHERE tenant_id = ? AND id = ?",
            (write_progress(connection, replace(progress, hint=hint, remedy=remedy)), tenant_id, job_id),
        )


def write_progress(connection: Connection, progress: JobProgress) -> str:
    # `asdict` would copy all of it first.
    told = {name: getattr(progress, name) for name in _TOLD}
    if progress.remedy:
        told["remedy"] = progress.remedy.to_json()
    return connection.dialect.to_json(told)


def _notice(connection: Connection, tenant_id: str, job_id: str, message: str, moment: str) -> None:
    connection.execute(
        "INSERT INTO notices (tenant_id, kind, job_id, document_id, uri, message, created_at, seen, sent) "
        "SELECT tenant_id, state, id, document_id, uri, ?, ?, 0, 0 FROM jobs "
        "WHERE tenant_id = ? AND id = ? AND notify = 1",
        (message, moment, tenant_id, job_id),
    )


def supersede(connection: Connection, tenant_id: str, by: Mapping[str, ReadTime | None]) -> None:
    """Cancel jobs with older content than was read at these times: their workers must not finish them."""
    for job_id, read in by.items():
        job = read_job(connection, tenant_id, job_id)
        if job and job.state in ACTIVE and not (read and read.precedes(job.read)):
            _supersede(connection, tenant_id, job_id, job.uri)


def supersede_failed(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> None:
    """Cancel jobs that failed of documents whose live content was read again since: a retry would replace it."""
    for part in in_parts(document_ids):
        failed = connection.execute(
            "SELECT id, uri FROM jobs WHERE tenant_id = ? AND kind = 'document' AND state = 'failed' "
            f"AND document_id IN ({marks(part)})",
            (tenant_id, *part),
        )
        for job_id, uri in failed.fetchall():
            _supersede(connection, tenant_id, job_id, uri)


def _supersede(connection: Connection, tenant_id: str, job_id: str, uri: str) -> None:
    end_job(connection, tenant_id, job_id, "cancelled", "superseded", f"newer content of {uri} came in")


def _active(connection: Connection, tenant_id: str, kb: KnowledgeBase, job: NewJob) -> Job | None:
    key = ("document_id", job.document_id) if job.document_id else ("source", job.source)
    # A look at a source that has begun may have passed what is new there.
    states = "('pending')" if job.kind == "sync" else "('pending', 'running')"
    row = connection.execute(
        f"{JOB} AND j.kb_id = ? AND j.kind = ? AND j.{key[0]} = ? AND j.state IN {states} ORDER BY j.seq DESC LIMIT 1",
        (tenant_id, kb.id, job.kind, key[1]),
    ).fetchone()
    return job_of(row) if row else None


def _turn(connection: Connection, tenant_id: str, kb: KnowledgeBase, job: NewJob) -> Job | None:
    """Return the job that a kb was given for this turn already, by another process that found it due."""
    row = connection.execute(
        f"{JOB} AND j.kb_id = ? AND j.kind = ? AND j.external_id = ?", (tenant_id, kb.id, job.kind, job.external_id)
    ).fetchone()
    return job_of(row) if row else None


def _same(waiting: Job, job: NewJob, facts: Metadata) -> bool:
    """Return whether both jobs would make the same document, wherever the content is stored."""
    apart: Metadata = {"original": "", "read": ()}
    return waiting.content_hash == job.content_hash and {**waiting.facts, **apart} == {**facts, **apart}


def _hasten(connection: Connection, tenant_id: str, waiting: Job, job: NewJob, facts: Json) -> Job:
    """Have a job that waits do what another was to do."""
    connection.execute(
        "UPDATE jobs SET priority = CASE WHEN priority < ? THEN priority ELSE ? END, "
        "notify = CASE WHEN notify > ? THEN notify ELSE ? END, facts = ? WHERE tenant_id = ? AND id = ?",
        (
            *(int(job.priority), int(job.priority), int(job.notify), int(job.notify)),
            *(connection.dialect.to_json(facts), tenant_id, waiting.id),
        ),
    )
    return _by_id(connection, tenant_id, waiting.id)


def _announce(connection: Connection, tenant_id: str, kb: KnowledgeBase, job: NewJob) -> None:
    """Write the document of a job, which exists from now on though nobody can find it yet."""
    if has_document(connection, tenant_id, job.document_id):
        return
    moment = canonical(now())
    connection.execute(
        "INSERT INTO documents (id, tenant_id, kb_id, source, external_id, uri, title, content_hash, version, "
        "last_version, chunk_count, token_count, media_type, metadata, recipe, embedded, created_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, '', 0, 0, 0, 0, '', '{}', '', 0, ?, ?)",
        (
            *(job.document_id, tenant_id, kb.id, job.source, job.external_id, job.uri),
            *(str(job.facts.get("title", "")), moment, moment),
        ),
    )


def _forget_old(connection: Connection, tenant_id: str) -> None:
    if next_number(connection, tenant_id, "jobs", 1) % 1000:
        return
    # Counted, since numbers need not be this tenant's alone.
    spent = f" AND (state = 'cancelled' OR (state = 'completed' AND NOT {held_condition(connection, 'jobs.')}))"
    for table, number, ended in (
        # The job that brought an original says whose it is: without it, the next sweep would take the file.
        # The last one of a document that is not live says why. And a kb's refreshes, which are few, say when the next
        # one is due.
        ("jobs", "seq", f"{spent} AND kind <> 'reembed' AND NOT EXISTS ({_LAST_OF_NONE})"),
        ("notices", "id", ""),
    ):
        connection.execute(
            f"DELETE FROM {table} WHERE tenant_id = ?{ended} AND {number} <= (SELECT {number} FROM {table} "
            f"WHERE tenant_id = ? ORDER BY {number} DESC LIMIT 1 OFFSET ?)",
            (tenant_id, tenant_id, KEPT_JOBS),
        )


def _weight(job: NewJob, weigh: Weigh) -> int:
    name = job.facts.get("original")
    return weigh(job.document_id, name) if name else 0


def _by_id(connection: Connection, tenant_id: str, job_id: str) -> Job:
    found = read_job(connection, tenant_id, job_id)
    assert found is not None
    return found


def read_job(connection: Connection, tenant_id: str, job_id: str) -> Job | None:
    row = connection.execute(f"{JOB} AND j.id = ?", (tenant_id, job_id)).fetchone()
    return job_of(row) if row else None


def newest_job(connection: Connection, tenant_id: str, document_id: str) -> Job | None:
    """Return the last job there was for a document."""
    row = connection.execute(
        f"{JOB} AND j.document_id = ? ORDER BY j.seq DESC LIMIT 1", (tenant_id, document_id)
    ).fetchone()
    return job_of(row) if row else None


def job_of(row: Sequence[Any]) -> Job:
    """Return the job of a row of `JOB`."""
    facts, progress, attempts, token, worker, code, error, created, started, finished = row[11:]
    made = parse_moment(created)
    assert made is not None
    identity, kind, kb, state, priority, document_id, source, external_id, uri, hashed, size = row[:11]
    return Job(
        *(identity, kind, kb, state, priority, document_id, source, external_id, uri, hashed, size),
        *(json.loads(facts), _progress(progress), attempts, token, worker, code, error, made),
        *(parse_moment(started) if started else None, parse_moment(finished) if finished else None),
    )


def _progress(text: str) -> JobProgress:
    stored = json.loads(text)
    remedy = Remedy.from_json(stored.pop("remedy", None))
    return JobProgress(**stored | {"remarks": tuple(stored.get("remarks", ()))}, remedy=remedy)


def forget_notices(connection: Connection, tenant_id: str, kb_id: int, source: str = "") -> None:
    """Remove what was told of a kb, or of the jobs of one of its sources."""
    if not source:
        connection.execute(
            "DELETE FROM notices WHERE tenant_id = ? AND kind = 'warning' AND uri = "
            "(SELECT 'quality:' || name FROM knowledge_bases WHERE tenant_id = ? AND id = ?)",
            (tenant_id, tenant_id, kb_id),
        )
    narrowed, given = (OF_SOURCE, (source,)) if source else ("", ())
    connection.execute(
        "DELETE FROM notices WHERE tenant_id = ? AND job_id IN "
        f"(SELECT id FROM jobs WHERE tenant_id = ? AND kb_id = ?{narrowed})",
        (tenant_id, tenant_id, kb_id, *given),
    )


def count_ended(connection: Connection, tenant_id: str, since: str) -> dict[str, int]:
    """Return how many jobs about documents have completed and failed since a moment."""
    rows = connection.execute(
        "SELECT state, count(*) FROM jobs WHERE tenant_id = ? AND kind = 'document' "
        "AND state IN ('completed', 'failed') AND finished_at >= ? GROUP BY state",
        (tenant_id, since),
    )
    return {state: int(count) for state, count in rows.fetchall()}
