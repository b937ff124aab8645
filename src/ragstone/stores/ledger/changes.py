"""The change feed's writing end."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.stores.database import Connection, next_number

SHORTEN_EVERY = 50_000
KEPT_CHANGES = 100_000


def publish(
    connection: Connection,
    tenant_id: str,
    kb_id: int,
    operation: str,
    chunks: Sequence[tuple[int, str]],
) -> None:
    """Tell those who follow: `upsert`, `tombstone`, or `vector` when only that came, for a chunk known before."""
    first = next_number(connection, tenant_id, "changes", len(chunks))
    connection.executemany(
        "INSERT INTO changes (seq, tenant_id, kb_id, operation, chunk_seq, chunk_id) VALUES (?, ?, ?, ?, ?, ?)",
        [(first + n, tenant_id, kb_id, operation, *chunk) for n, chunk in enumerate(chunks)],
    )
    newest = first + len(chunks) - 1
    if newest // SHORTEN_EVERY > (first - 1) // SHORTEN_EVERY:
        # Who has not looked for so long reads the chunks themselves.
        connection.execute(
            "DELETE FROM changes WHERE tenant_id = ? AND seq <= ?", (tenant_id, newest - KEPT_CHANGES)
        )
