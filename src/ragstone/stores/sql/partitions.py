"""A tenant's own part of PostgreSQL's large tables.

A search asks the part itself instead of the whole. The policy there names its tenant outright, so it is settled when
the query is planned, and an index can answer alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.stores.sql.database import Connection

TENANT_ID = re.compile(r"[0-9a-z]{1,32}")


def part(table: str, tenant_id: str) -> str:
    """Return the name of a tenant's part of a table, as it stands in SQL."""
    if not TENANT_ID.fullmatch(tenant_id):
        raise ValueError(f"{tenant_id!r:.40} is no tenant's id")
    return f'ragstone."{table}_{tenant_id}"'


LEAST = 64
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
    """Refresh the planner's statistics of a tenant's rows; skip tables that another session analyzes."""
    parts = [f"{part(table, tenant_id)} ({columns})" for table, columns in COLUMNS.items()]
    connection.execute(
        f"ANALYZE (SKIP_LOCKED) documents (tenant_id, kb_id, id, version, parent_id), {', '.join(parts)}"
    )
