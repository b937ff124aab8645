"""What a tenant has of each source type."""

from __future__ import annotations

from ragstone.stores.database import Connection


def count_by_source_type(connection: Connection, tenant_id: str) -> list[tuple[str, int, int]]:
    """Source type, documents and chunks, in order of source type; live documents of all kbs."""
    kind = connection.dialect.json_text("d.metadata", "source_type")
    rows = connection.execute(
        f"SELECT {kind}, count(*), sum(d.chunk_count) FROM documents d "
        f"WHERE d.tenant_id = ? AND d.version > 0 AND {kind} IS NOT NULL GROUP BY {kind} ORDER BY {kind}",
        (tenant_id,),
    )
    return [(str(source_type), int(documents), int(chunks)) for source_type, documents, chunks in rows]
