"""The original files of documents, which their jobs name, and what they take.

A job's `stored` is the size of the file that it brought, as it lies on the disk, for as long as the file is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragstone.stores.ledger.documents import read_sequence
from ragstone.stores.sql.database import Connection, in_parts, marks

MOVED = "moved-"


class Weighed(NamedTuple):
    """An original that is held, and what it is counted with."""

    job_id: str
    document_id: str
    name: str
    stored: int


def held_condition(connection: Connection, of: str) -> str:
    """Return SQL for whether a job's original is to be kept or may be used again; `of` names its table.

    A document's original is that of its last job that completed. Of one that did not, another try can be made as long
    as nothing newer came in.
    """
    newer = (
        f"SELECT 1 FROM jobs n WHERE n.tenant_id = {of}tenant_id AND n.document_id = {of}document_id "
        f"AND n.seq > {of}seq"
    )
    kept = connection.dialect.json_true(f"{of}facts", "keep")
    return (
        f"(CASE WHEN {of}state = 'completed' THEN {kept} AND NOT EXISTS ({newer} AND n.state = 'completed') "
        f"ELSE NOT EXISTS ({newer}) END)"
    )


def of_document(connection: Connection, tenant_id: str, document_id: str) -> list[str]:
    """Return all files that jobs brought for a document."""
    rows = connection.execute(
        f"SELECT DISTINCT {name_in(connection)} FROM jobs WHERE tenant_id = ? AND document_id = ?",
        (tenant_id, document_id),
    )
    return [name for (name,) in rows if name]


def of_kb(connection: Connection, tenant_id: str, kb: str, source: str = "") -> dict[str, list[str]]:
    """Return the same for all documents of a kb, or of one of its sources."""
    narrowed, given = (" AND j.source = ? AND j.kind <> 'task'", (source,)) if source else ("", ())
    rows = connection.execute(
        f"SELECT j.document_id, {name_in(connection, 'j.')} FROM jobs j "
        "JOIN knowledge_bases k ON k.tenant_id = j.tenant_id AND k.id = j.kb_id "
        f"WHERE j.tenant_id = ? AND k.name = ?{narrowed}",
        (tenant_id, kb, *given),
    )
    found: dict[str, list[str]] = {}
    for document_id, name in rows:
        if name:
            found.setdefault(document_id, []).append(name)
    return found


def list_needed(connection: Connection, tenant_id: str, document_id: str) -> set[str]:
    """Return those that are to be kept, or that a job may still be made of."""
    rows = connection.execute(
        f"SELECT {name_in(connection, 'j.')} FROM jobs j WHERE j.tenant_id = ? AND j.document_id = ? "
        f"AND {held_condition(connection, 'j.')}",
        (tenant_id, document_id),
    )
    return {name for (name,) in rows if name}


def let_go(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> None:
    """Count originals no more that documents have no use for since another one came in or completed."""
    for part in in_parts([identity for identity in document_ids if identity]):
        connection.execute(
            f"UPDATE jobs SET stored = 0 WHERE tenant_id = ? AND document_id IN ({marks(part)}) AND stored > 0 "
            f"AND NOT {held_condition(connection, 'jobs.')}",
            (tenant_id, *part),
        )


def list_weighed(connection: Connection, tenant_id: str) -> list[Weighed]:
    """Return all originals that are held or counted, with their counted size; one that is not held has no name."""
    held = held_condition(connection, "j.")
    rows = connection.execute(
        f"SELECT j.id, j.document_id, CASE WHEN {held} THEN {name_in(connection, 'j.')} END, j.stored "
        f"FROM jobs j WHERE j.tenant_id = ? AND j.document_id <> '' AND (j.stored > 0 OR {held}) ORDER BY j.seq",
        (tenant_id,),
    )
    return [Weighed(job_id, document_id, name or "", int(stored)) for job_id, document_id, name, stored in rows]


def correct(connection: Connection, tenant_id: str, found: Sequence[tuple[Weighed, int]]) -> None:
    """Count originals with the sizes they were found to have, unless somebody has changed that meanwhile."""
    connection.executemany(
        "UPDATE jobs SET stored = ? WHERE tenant_id = ? AND id = ? AND stored = ?",
        [(size, tenant_id, original.job_id, original.stored) for original, size in found],
    )


def name_in(connection: Connection, of: str = "") -> str:
    return connection.dialect.json_text(f"{of}facts", "original")


def mark_origin(connection: Connection, tenant_id: str, origin: str) -> None:
    """Remember, in the transaction that wrote it, that all there is came from that tenant of another ledger."""
    connection.execute(
        "INSERT INTO counters (tenant_id, name, value) VALUES (?, ?, ?) "
        "ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value",
        (tenant_id, origin_mark(origin), read_sequence(connection, tenant_id)),
    )


def is_untouched(connection: Connection, tenant_id: str, origin: str) -> bool:
    """Return whether nothing but a move from that tenant has written here."""
    row = connection.execute(
        "SELECT value FROM counters WHERE tenant_id = ? AND name = ?", (tenant_id, origin_mark(origin))
    ).fetchone()
    return (int(row[0]) if row else 0) == read_sequence(connection, tenant_id)


def list_origins(connection: Connection, tenant_id: str) -> dict[str, bool]:
    """Return the marks of moves that have written here, each with whether nothing else has written since."""
    rows = connection.execute(
        "SELECT name, value FROM counters WHERE tenant_id = ? AND substr(name, 1, ?) = ?",
        (tenant_id, len(MOVED), MOVED),
    ).fetchall()
    sequence = read_sequence(connection, tenant_id)
    return {name: int(value) == sequence for name, value in rows}


def origin_mark(tenant_id: str) -> str:
    """Return the name of the counter that says how far a move from that tenant has written."""
    return f"{MOVED}{tenant_id}"[:31]
