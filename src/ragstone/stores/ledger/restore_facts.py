"""What is true of restored documents besides their versions: their times, their files, how many there are."""

from __future__ import annotations

from ragstone.core.ids import opaque_id
from ragstone.core.types import KnowledgeBase
from ragstone.stores.database import Connection
from ragstone.stores.ledger.originals import let_go
from ragstone.stores.ledger.whole import KeptFile, WholeDocument


def date_document(connection: Connection, tenant_id: str, identity: str, document: WholeDocument) -> None:
    """Give a document that was activated the times it had."""
    connection.execute(
        "UPDATE documents SET created_at = ?, updated_at = ? WHERE tenant_id = ? AND id = ?",
        (document.created_at, document.updated_at, tenant_id, identity),
    )


def look_around(connection: Connection, tenant_id: str) -> None:
    """Have the database count what there is now."""
    connection.dialect.look_around(connection, tenant_id)


def date_kb(connection: Connection, tenant_id: str, kb: KnowledgeBase, created_at: str) -> None:
    """Say when a kb was made, as long as nothing is in it."""
    connection.execute(
        "UPDATE knowledge_bases SET created_at = ? WHERE tenant_id = ? AND id = ? "
        "AND NOT EXISTS (SELECT 1 FROM documents WHERE tenant_id = ? AND kb_id = ?)",
        (created_at, tenant_id, kb.id, tenant_id, kb.id),
    )


def keep_file(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    identity: str,
    document: WholeDocument,
    file: KeptFile,
    name: str,
) -> None:
    """Say that an original belongs to a document, as the job that brings one does."""
    connection.execute(
        "INSERT INTO jobs (id, tenant_id, kb_id, kind, state, priority, document_id, source, external_id, uri, "
        "content_hash, size, facts, progress, notify, attempts, token, worker, boot, lease_until, not_before, "
        "error_code, error, created_at, started_at, finished_at, stored) "
        "VALUES (?, ?, ?, 'document', 'completed', 0, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1, 1, '', '', 0, 0, '', '', "
        "?, ?, ?, ?)",
        (
            *(opaque_id(), tenant_id, kb.id, identity, document.source, document.external_id, file.uri),
            *(file.content_hash, file.size, connection.dialect.to_json({**file.facts, "original": name})),
            *('{"percent": 100}', file.created_at, file.finished_at, file.finished_at),
            # Where files are sealed it is a little more: the next sweep counts them as they are.
            file.size,
        ),
    )
    let_go(connection, tenant_id, [identity])
