"""How many rows there are of what is to be erased, or was."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.stores.database import Connection
from ragstone.stores.ledger.erasure import Traces, marks, parts, sources_of
from ragstone.stores.ledger.sqlite_dialect import SqliteDialect

BY_DOCUMENT = {
    "documents": "id",
    "versions": "document_id",
    "chunks": "document_id",
    "resemblances": "document_id",
    "checkpoints": "document_id",
    "notices": "document_id",
}
OF_TENANT = (*BY_DOCUMENT, "terms", "vectors", "jobs", "sources", "spaces", "knowledge_bases")


def count(connection: Connection, tenant_id: str, traces: Traces) -> dict[str, int]:
    """How many rows there are of it now."""
    found = {
        table: _count(connection, tenant_id, table, column, traces.document_ids)
        for table, column in BY_DOCUMENT.items()
    }
    found["terms"] = _count(connection, tenant_id, "terms", "chunk_seq", traces.numbers)
    found["vectors"] = sum(
        _count(connection, tenant_id, "vectors", f"space_id = {int(space)} AND chunk_seq", traces.numbers)
        for space in traces.space_ids
    )
    found["postings"] = _postings(connection, tenant_id, traces)
    found["jobs"] = _count(connection, tenant_id, "jobs", "id", traces.job_ids)
    found["notices"] += _count(
        connection, tenant_id, "notices", "document_id = '' AND job_id", traces.job_ids
    )
    if traces.source or traces.whole_kb:
        found["sources"] = sources_of(connection, tenant_id, traces.kb, traces.source)
    if traces.whole_kb:
        found["spaces"] = _count(connection, tenant_id, "spaces", "kb_id", [traces.kb.id])
        found["knowledge_bases"] = _count(connection, tenant_id, "knowledge_bases", "id", [traces.kb.id])
    return found


def count_tenant(connection: Connection, tenant_id: str) -> dict[str, int]:
    """How many rows there are of a tenant."""
    return {
        table: int(
            connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = ?", (tenant_id,)).fetchone()[
                0
            ]
        )
        for table in OF_TENANT
    }


def _postings(connection: Connection, tenant_id: str, traces: Traces) -> int:
    """Of how many chunks the database's own lexical index still has words."""
    if isinstance(connection.dialect, SqliteDialect):
        table = f"lexical_{int(traces.kb.id)}_docsize"
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
            return 0
        return sum(
            int(
                connection.execute(
                    f"SELECT count(*) FROM {table} WHERE id IN ({marks(part)})", part
                ).fetchone()[0]
            )
            for part in parts(traces.numbers)
        )
    row = connection.execute(
        "SELECT count(DISTINCT chunk_seq) FROM postings WHERE tenant_id = ? AND kb_id = ? "
        "AND chunk_seq = ANY(?::bigint[])",
        (tenant_id, traces.kb.id, list(traces.numbers)),
    ).fetchone()
    return int(row[0])


def _count(
    connection: Connection, tenant_id: str, table: str, column: str, values: Sequence[str] | Sequence[int]
) -> int:
    return sum(
        int(
            connection.execute(
                f"SELECT count(*) FROM {table} WHERE tenant_id = ? AND {column} IN ({marks(part)})",
                (tenant_id, *part),
            ).fetchone()[0]
        )
        for part in parts(values)
    )
