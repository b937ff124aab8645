"""Count the rows of something that is to be erased, or was."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ragstone.core.audit import ErasureTarget
from ragstone.core.types import KnowledgeBase, Vector
from ragstone.stores.ledger.documents import family, read_kb, read_kbs
from ragstone.stores.ledger.jobs import OF_SOURCE, PART_KEY, forget_notices, forget_unstored, list_unstored
from ragstone.stores.ledger.sqlite.file import SqliteDialect
from ragstone.stores.ledger.writes import Indexes, remove_family
from ragstone.stores.sql.database import Connection, in_parts, marks

SAMPLES = 3
BY_DOCUMENT = {
    "documents": "id",
    "versions": "document_id",
    "chunks": "document_id",
    "resemblances": "document_id",
    "checkpoints": "document_id",
    "notices": "document_id",
}
OF_SHOP = ("products", "services", "appointments", "agent_settings")
OF_TENANT = (*BY_DOCUMENT, "terms", "vectors", "jobs", "sources", "spaces", "knowledge_bases", *OF_SHOP)


class Sample(NamedTuple):
    """A chunk as somebody might search for it."""

    kb: KnowledgeBase
    text: str
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class Traces:
    """The rows that a document, a source or a kb has left."""

    kb: KnowledgeBase
    document_ids: tuple[str, ...]
    numbers: Sequence[int]
    """Of its chunks, live and staged."""
    chunk_ids: frozenset[str]
    """Empty when all of the kb goes: then nothing in it may be found."""
    job_ids: tuple[str, ...]
    space_ids: tuple[int, ...]
    whole_kb: bool
    source: str
    samples: tuple[Sample, ...]
    unstored: tuple[str, ...]
    """Parts of documents that were never stored: they may be of what is erased, and all go."""


def survey(connection: Connection, tenant_id: str, target: ErasureTarget) -> Traces | None:
    """Return what a document, a source or a kb has left; None when there is nothing of that name."""
    whole_kb = target.kind == "kb"
    kb = _kb(connection, tenant_id, target)
    if kb is None:
        return None
    document_ids = _document_ids(connection, tenant_id, target, kb)
    source = target.name if target.kind == "source" else ""
    if not document_ids and not whole_kb and not sources_of(connection, tenant_id, kb, source):
        return None
    numbers, chunk_ids = array("q"), set()
    for part in in_parts(document_ids):
        rows = connection.execute(
            f"SELECT seq, id FROM chunks WHERE tenant_id = ? AND document_id IN ({marks(part)})", (tenant_id, *part)
        )
        for number, chunk_id in rows:
            numbers.append(number)
            if not whole_kb:
                chunk_ids.add(chunk_id)
    spaces = connection.execute("SELECT id FROM spaces WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb.id))
    return Traces(
        kb=kb,
        document_ids=tuple(document_ids),
        numbers=numbers,
        chunk_ids=frozenset(chunk_ids),
        job_ids=_job_ids(connection, tenant_id, kb, document_ids, source, whole_kb=whole_kb),
        space_ids=tuple(space for (space,) in spaces),
        whole_kb=whole_kb,
        source=source,
        samples=_samples(connection, tenant_id, kb, numbers),
        unstored=tuple(list_unstored(connection, tenant_id)),
    )


def tenant_samples(connection: Connection, tenant_id: str) -> list[Sample]:
    """Return some chunks of every kb."""
    found: list[Sample] = []
    for kb in read_kbs(connection, tenant_id):
        rows = connection.execute(
            "SELECT seq FROM chunks WHERE tenant_id = ? AND kb_id = ? ORDER BY seq LIMIT ?", (tenant_id, kb.id, SAMPLES)
        ).fetchall()
        found += _samples(connection, tenant_id, kb, [number for (number,) in rows])
    return found


def sources_of(connection: Connection, tenant_id: str, kb: KnowledgeBase, name: str) -> int:
    """Return the number of configured sources of a kb, or of those with that name."""
    narrowed, given = (" AND name = ?", (name,)) if name else ("", ())
    row = connection.execute(
        f"SELECT count(*) FROM sources WHERE tenant_id = ? AND kb_id = ?{narrowed}", (tenant_id, kb.id, *given)
    ).fetchone()
    return int(row[0])


def delete_source(connection: Connection, tenant_id: str, indexes: Indexes, kb: KnowledgeBase, name: str) -> list[str]:
    """Remove a source, what it brought and its jobs; a sync that still reads it can write nothing more."""
    roots = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? AND parent_id IS NULL",
        (tenant_id, kb.id, name),
    ).fetchall()
    gone = [identity for (root,) in roots for identity in remove_family(connection, tenant_id, indexes, root)]
    forget_unstored(connection, tenant_id)
    of_source = (tenant_id, kb.id, name)
    forget_notices(connection, tenant_id, kb.id, name)
    connection.execute(f"DELETE FROM jobs WHERE tenant_id = ? AND kb_id = ?{OF_SOURCE}", of_source)
    connection.execute("DELETE FROM sources WHERE tenant_id = ? AND kb_id = ? AND name = ?", of_source)
    return gone


def forget_copies(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> list[str]:
    """Remove articles and tasks that may hold what a kb says; return what the files of the tasks are kept under.

    Whoever still works on one of them can write down nothing more.
    """
    connection.execute("DELETE FROM article_runs WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb.id))
    rows = connection.execute(
        "SELECT id, document_id, kb_id, source, state, facts FROM jobs WHERE tenant_id = ? AND kind = 'task'",
        (tenant_id,),
    )
    gone = [(job_id, folder) for job_id, folder, *task in rows.fetchall() if _may_hold(kb, *task)]
    for part in in_parts([job_id for job_id, _ in gone]):
        connection.execute(f"DELETE FROM jobs WHERE tenant_id = ? AND id IN ({marks(part)})", (tenant_id, *part))
    return [folder for _, folder in gone]


def _may_hold(kb: KnowledgeBase, of_kb: int, task: str, state: str, facts: str) -> bool:
    """Return whether what a task reads or has made may hold what a kb says."""
    match task:
        case "import":
            return state != "completed"  # until then there is its archive, and nobody knows what that holds
        case "export":
            names = json.loads(facts)["kbs"]  # as they were called: only the first is known for certain
            return of_kb == kb.id or len(names) > 1 or kb.name in names
        case _:
            return of_kb == kb.id


def _kb(connection: Connection, tenant_id: str, target: ErasureTarget) -> KnowledgeBase | None:
    if target.kind != "document":
        return read_kb(connection, tenant_id, target.name if target.kind == "kb" else target.kb)
    row = connection.execute(
        "SELECT k.name FROM documents d JOIN knowledge_bases k ON k.tenant_id = d.tenant_id AND k.id = d.kb_id "
        "WHERE d.tenant_id = ? AND d.id = ?",
        (tenant_id, target.name),
    ).fetchone()
    return read_kb(connection, tenant_id, row[0]) if row else None


def _document_ids(connection: Connection, tenant_id: str, target: ErasureTarget, kb: KnowledgeBase) -> list[str]:
    if target.kind == "document":
        return family(connection, tenant_id, target.name)
    narrowed, given = (" AND source = ?", (target.name,)) if target.kind == "source" else ("", ())
    rows = connection.execute(
        f"SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ?{narrowed} ORDER BY id", (tenant_id, kb.id, *given)
    )
    return [identity for (identity,) in rows]


def _job_ids(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    document_ids: Sequence[str],
    source: str,
    *,
    whole_kb: bool,
) -> tuple[str, ...]:
    if whole_kb or source:
        narrowed, given = (OF_SOURCE, (source,)) if source else ("", ())
        rows = connection.execute(
            f"SELECT id FROM jobs WHERE tenant_id = ? AND kb_id = ?{narrowed}", (tenant_id, kb.id, *given)
        )
        return tuple(job for (job,) in rows)
    return tuple(
        job
        for part in in_parts(document_ids)
        for (job,) in connection.execute(
            f"SELECT id FROM jobs WHERE tenant_id = ? AND document_id IN ({marks(part)})", (tenant_id, *part)
        )
    )


def _samples(connection: Connection, tenant_id: str, kb: KnowledgeBase, numbers: Sequence[int]) -> tuple[Sample, ...]:
    """Return a few chunks, from the first to the last."""
    step = max(1, len(numbers) // SAMPLES)
    chosen = list(numbers[::step][:SAMPLES])
    if not chosen:
        return ()
    rows = connection.execute(
        "SELECT c.content, v.vector FROM chunks c LEFT JOIN vectors v ON v.tenant_id = c.tenant_id "
        f"AND v.space_id = ? AND v.chunk_seq = c.seq WHERE c.tenant_id = ? AND c.seq IN ({marks(chosen)})",
        (kb.space.id if kb.space else 0, tenant_id, *chosen),
    )
    unpack = connection.dialect.unpack_vector
    return tuple(Sample(kb, text, None if packed is None else unpack(packed)) for text, packed in rows)


def count(connection: Connection, tenant_id: str, traces: Traces) -> dict[str, int]:
    """Count the rows that exist now."""
    found = {
        table: _count(connection, tenant_id, table, column, traces.document_ids)
        for table, column in BY_DOCUMENT.items()
    }
    found["checkpoints"] += _count(connection, tenant_id, "checkpoints", PART_KEY, traces.unstored)
    found["terms"] = _count(connection, tenant_id, "terms", "chunk_seq", traces.numbers)
    found["vectors"] = sum(
        _count(connection, tenant_id, "vectors", f"space_id = {int(space)} AND chunk_seq", traces.numbers)
        for space in traces.space_ids
    )
    found["postings"] = _postings(connection, tenant_id, traces)
    found["jobs"] = _count(connection, tenant_id, "jobs", "id", traces.job_ids)
    found["notices"] += _count(connection, tenant_id, "notices", "document_id = '' AND job_id", traces.job_ids)
    if traces.source or traces.whole_kb:
        found["sources"] = sources_of(connection, tenant_id, traces.kb, traces.source)
    if traces.whole_kb:
        found["spaces"] = _count(connection, tenant_id, "spaces", "kb_id", [traces.kb.id])
        found["knowledge_bases"] = _count(connection, tenant_id, "knowledge_bases", "id", [traces.kb.id])
    return found


def count_tenant(connection: Connection, tenant_id: str) -> dict[str, int]:
    """Count the rows of a tenant."""
    return {
        table: int(connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = ?", (tenant_id,)).fetchone()[0])
        for table in OF_TENANT
    }


def _postings(connection: Connection, tenant_id: str, traces: Traces) -> int:
    """Count the chunks whose words the database's own lexical index still has."""
    if isinstance(connection.dialect, SqliteDialect):
        table = f"lexical_{int(traces.kb.id)}_docsize"
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
            return 0
        return sum(
            int(connection.execute(f"SELECT count(*) FROM {table} WHERE id IN ({marks(part)})", part).fetchone()[0])
            for part in in_parts(traces.numbers)
        )
    row = connection.execute(
        "SELECT count(DISTINCT chunk_seq) FROM postings WHERE tenant_id = ? AND kb_id = ? "
        "AND chunk_seq = ANY(?::bigint[])",
        (tenant_id, traces.kb.id, list(traces.numbers)),
    ).fetchone()
    return int(row[0])


def _count(
    connection: Connection, tenant_id: str, table: str, column: str, values: Sequence[str] | Sequence[int]
) -> int:
    return sum(
        int(
            connection.execute(
                f"SELECT count(*) FROM {table} WHERE tenant_id = ? AND {column} IN ({marks(part)})", (tenant_id, *part)
            ).fetchone()[0]
        )
        for part in in_parts(values)
    )
