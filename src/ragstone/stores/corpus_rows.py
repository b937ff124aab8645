"""What a collection has in the ledger, to hold its files and its vectors against."""

from __future__ import annotations

from ragstone.core.types import KnowledgeBase
from ragstone.stores.database import Connection
from ragstone.stores.feed import LIVE


def tenant_id_of(_: Connection, tenant_id: str) -> str:
    """The id that a tenant's rows carry."""
    return tenant_id


def live_chunk_ids(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> set[str]:
    """The chunks that can be found."""
    rows = connection.execute(
        f"SELECT c.id FROM chunks c {LIVE} WHERE c.tenant_id = ? AND c.kb_id = ?", (tenant_id, kb.id)
    )
    return {chunk_id for (chunk_id,) in rows}


def vector_count(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> int:
    """How many vectors there are in the live Space."""
    if kb.space is None:
        return 0
    row = connection.execute(
        "SELECT count(*) FROM vectors WHERE tenant_id = ? AND space_id = ?", (tenant_id, kb.space.id)
    ).fetchone()
    return int(row[0])
