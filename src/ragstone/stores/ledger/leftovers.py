"""Versions that were staged by a process which did not live to make them live or to take them back."""

from __future__ import annotations

from datetime import datetime, timedelta

from ragstone.core.clock import canonical
from ragstone.stores.database import Connection
from ragstone.stores.ledger.reads import read_kbs
from ragstone.stores.ledger.writes import Indexes, delete_document, discard

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
