"""Unfinished versions: checkpoints of long documents, and staged versions that a dead process left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from ragstone.core.clock import canonical
from ragstone.stores.ledger.reads import read_kbs
from ragstone.stores.ledger.writes import Indexes, delete_document, discard
from ragstone.stores.sql.database import Connection, marks


def save(connection: Connection, tenant_id: str, document_id: str, made_from: str, part: str, data: bytes) -> None:
    """Keep a part; parts that were made from other content or in another way are of no use any more."""
    connection.execute(
        "DELETE FROM checkpoints WHERE tenant_id = ? AND document_id = ? AND (made_from <> ? OR part = ?)",
        (tenant_id, document_id, made_from, part),
    )
    connection.execute(
        "INSERT INTO checkpoints (document_id, made_from, part, tenant_id, data) VALUES (?, ?, ?, ?, ?)",
        (document_id, made_from, part, tenant_id, data),
    )


def load(connection: Connection, tenant_id: str, document_id: str, made_from: str, part: str) -> bytes | None:
    row = connection.execute(
        "SELECT data FROM checkpoints WHERE tenant_id = ? AND document_id = ? AND made_from = ? AND part = ?",
        (tenant_id, document_id, made_from, part),
    ).fetchone()
    return row[0] if row else None


def resembling(
    connection: Connection, tenant_id: str, kb_id: int, bands: Mapping[str, Sequence[int]]
) -> dict[str, dict[str, bytes]]:
    """For each document: signatures of other live ones that share a band with it, by document id."""
    return {
        document_id: _resembling(connection, tenant_id, kb_id, of_one, document_id)
        for document_id, of_one in bands.items()
    }


def _resembling(connection: Connection, tenant_id: str, kb_id: int, bands: Sequence[int], but: str) -> dict[str, bytes]:
    rows = connection.execute(
        "SELECT DISTINCT d.id, d.signature FROM resemblances r "
        "JOIN documents d ON d.tenant_id = r.tenant_id AND d.id = r.document_id "
        f"WHERE r.tenant_id = ? AND r.kb_id = ? AND r.band IN ({marks(bands)}) AND d.id <> ? AND d.version > 0 "
        "AND d.signature IS NOT NULL ORDER BY d.id LIMIT 100",
        (tenant_id, kb_id, *bands, but),
    )
    return dict(rows.fetchall())


SETTLED = timedelta(hours=1)
"""A version this old that nobody works on will not go live any more."""


def staged_leftovers(connection: Connection, tenant_id: str, moment: datetime) -> list[tuple[int, str, int]]:
    """Staged versions that nobody works on any more: kb, document and number."""
    rows = connection.execute(
        "SELECT d.kb_id, v.document_id, v.version FROM versions v "
        "JOIN documents d ON d.tenant_id = v.tenant_id AND d.id = v.document_id "
        "WHERE v.tenant_id = ? AND v.version <> d.version AND v.created_at < ? AND NOT EXISTS ("
        "SELECT 1 FROM jobs j WHERE j.tenant_id = v.tenant_id AND j.document_id = v.document_id "
        "AND j.state IN ('pending', 'running')) ORDER BY v.document_id, v.version",
        (tenant_id, canonical(moment - SETTLED)),
    )
    return [(kb_id, document_id, number) for kb_id, document_id, number in rows]


def discard_leftovers(connection: Connection, tenant_id: str, indexes: Indexes, moment: datetime) -> int:
    """Remove them, and documents that were never anything else; how many versions it were."""
    found = staged_leftovers(connection, tenant_id, moment)
    kbs = {kb.id: kb for kb in read_kbs(connection, tenant_id)}
    for kb_id, document_id, number in found:
        discard(connection, tenant_id, indexes, kbs[kb_id], document_id, number)
    for document_id in {document_id for _, document_id, _ in found}:
        if _is_nothing(connection, tenant_id, document_id):
            delete_document(connection, tenant_id, indexes, document_id)
    return len(found)


def _is_nothing(connection: Connection, tenant_id: str, document_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM documents d WHERE d.tenant_id = ? AND d.id = ? AND d.version = 0 "
        "AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.tenant_id = d.tenant_id AND v.document_id = d.id) "
        "AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.tenant_id = d.tenant_id AND j.document_id = d.id) "
        "AND NOT EXISTS (SELECT 1 FROM documents c WHERE c.tenant_id = d.tenant_id AND c.parent_id = d.id)",
        (tenant_id, document_id),
    ).fetchone()
    return row is not None
