"""Another name for a kb: everything in it is known by the kb's number, so one row says it all."""

from __future__ import annotations

from dataclasses import replace

from ragstone.core.errors import CollectionExists, StoreBusy
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import KnowledgeBase
from ragstone.stores.ledger.reads import read_kb
from ragstone.stores.ledger.writes import present
from ragstone.stores.sql.database import Connection


def rename_kb(connection: Connection, tenant_id: str, kb: KnowledgeBase, name: str) -> KnowledgeBase:
    """The kb under its new name; `NotFoundError` when it is not the kb that it was."""
    found = present(connection, tenant_id, kb)
    if found.name == name:
        return found
    if read_kb(connection, tenant_id, name):
        raise name_taken(name)
    running = connection.execute(
        "SELECT count(*) FROM jobs WHERE tenant_id = ? AND kb_id = ? AND state = 'running'", (tenant_id, kb.id)
    ).fetchone()[0]
    if running:
        # A worker knows its kb by name, and would make another one of the old name.
        raise StoreBusy(
            f"{running} running jobs work on knowledge base '{kb.name}'",
            hint="try again when they have ended",
            remedy=Remedy(Action.LIST_JOBS),
        )
    connection.execute("UPDATE knowledge_bases SET name = ? WHERE tenant_id = ? AND id = ?", (name, tenant_id, kb.id))
    return replace(found, name=name)


def name_taken(name: str) -> CollectionExists:
    """Return the error for a kb name that is taken."""
    return CollectionExists(
        f"there is a knowledge base '{name}' already",
        hint="choose another name, or",
        remedy=Remedy(Action.DELETE_KB, kb=name),
    )
