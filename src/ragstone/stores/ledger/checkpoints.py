"""Parts of unfinished documents, so that a long one does not start again; and what resembles what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragstone.stores.database import Connection, marks


def save(
    connection: Connection, tenant_id: str, document_id: str, made_from: str, part: str, data: bytes
) -> None:
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


def _resembling(
    connection: Connection, tenant_id: str, kb_id: int, bands: Sequence[int], but: str
) -> dict[str, bytes]:
    rows = connection.execute(
        "SELECT DISTINCT d.id, d.signature FROM resemblances r "
        "JOIN documents d ON d.tenant_id = r.tenant_id AND d.id = r.document_id "
        f"WHERE r.tenant_id = ? AND r.kb_id = ? AND r.band IN ({marks(bands)}) AND d.id <> ? AND d.version > 0 "
        "AND d.signature IS NOT NULL ORDER BY d.id LIMIT 100",
        (tenant_id, kb_id, *bands, but),
    )
    return dict(rows.fetchall())
