"""What PostgreSQL's planner knows of a tenant's rows.

The database finds out by itself, but only some time after rows came. A search with a filter right after a large load
would be planned for a table with hardly a row in it, and take minutes. So whoever loads says it, each time that the
tenant's chunks have doubled.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.stores.database import Connection
from ragstone.stores.partitions import part

LEAST = 1024
COLUMNS = {
    "chunks": "tenant_id, kb_id, seq, id, document_id, version",
    "vectors": "tenant_id, space_id, chunk_seq",
    "postings": "kb_id, term, chunk_seq",
}


def note_growth(connection: Connection, tenant_id: str, rows: Sequence[tuple[int, str]]) -> None:
    """Refresh the statistics if these chunks, by number, reach or pass a power of two."""
    numbers = [number for number, _ in rows]
    if numbers and max(numbers) >= LEAST and (min(numbers) - 1).bit_length() < max(numbers).bit_length():
        refresh(connection, tenant_id)


def refresh(connection: Connection, tenant_id: str) -> None:
    """Have the planner look at a tenant's rows; tables that somebody else looks at are left to them."""
    parts = [f"{part(table, tenant_id)} ({columns})" for table, columns in COLUMNS.items()]
    connection.execute(
        f"ANALYZE (SKIP_LOCKED) documents (tenant_id, kb_id, id, version, parent_id), {', '.join(parts)}"
    )
