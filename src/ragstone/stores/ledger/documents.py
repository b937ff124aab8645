"""What a transaction does to a document besides writing and removing versions of it."""

from __future__ import annotations

from ragstone.stores.database import Connection


def set_recipe(connection: Connection, tenant_id: str, document_id: str, recipe: str) -> None:
    """Say what made the live version, once all of it is there."""
    connection.execute(
        "UPDATE documents SET recipe = ? WHERE id = ? AND tenant_id = ?", (recipe, document_id, tenant_id)
    )


def has_document(connection: Connection, tenant_id: str, document_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM documents WHERE id = ? AND tenant_id = ?", (document_id, tenant_id)
    ).fetchone()
    return row is not None


def family(connection: Connection, tenant_id: str, document_id: str) -> list[str]:
    """A document and all that came in with it: an attachment may have some of its own."""
    found = {document_id: None}
    waiting = [document_id]
    while waiting:
        children = connection.execute(
            "SELECT id FROM documents WHERE parent_id = ? AND tenant_id = ?", (waiting.pop(), tenant_id)
        )
        fresh = [child for (child,) in children if child not in found]
        found.update(dict.fromkeys(fresh))
        waiting += fresh
    return list(found)


def move_document(
    connection: Connection, tenant_id: str, document_id: str, external_id: str, uri: str
) -> None:
    """The same document is found under another external id from now on; one that never went live makes room."""
    connection.execute(
        "DELETE FROM documents WHERE tenant_id = ? AND external_id = ? AND id <> ? AND version = 0 "
        "AND (kb_id, source) = (SELECT kb_id, source FROM documents WHERE tenant_id = ? AND id = ?)",
        (tenant_id, external_id, document_id, tenant_id, document_id),
    )
    connection.execute(
        "UPDATE documents SET external_id = ?, uri = ? WHERE id = ? AND tenant_id = ?",
        (external_id, uri, document_id, tenant_id),
    )
