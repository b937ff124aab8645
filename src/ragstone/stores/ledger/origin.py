"""Where a tenant's content came from, so that a move that goes on cannot undo what others wrote since."""

from __future__ import annotations

from ragstone.stores.database import Connection
from ragstone.stores.ledger.reads import read_sequence


def mark_origin(connection: Connection, tenant_id: str, origin: str) -> None:
    """Remember, in the transaction that wrote it, that all there is came from that tenant of another ledger."""
    connection.execute(
        "INSERT INTO counters (tenant_id, name, value) VALUES (?, ?, ?) "
        "ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value",
        (tenant_id, _origin(origin), read_sequence(connection, tenant_id)),
    )


def is_untouched(connection: Connection, tenant_id: str, origin: str) -> bool:
    """Whether nobody has written here but a move from that tenant."""
    row = connection.execute(
        "SELECT value FROM counters WHERE tenant_id = ? AND name = ?", (tenant_id, _origin(origin))
    ).fetchone()
    return (int(row[0]) if row else 0) == read_sequence(connection, tenant_id)


def _origin(tenant_id: str) -> str:
    return f"moved-{tenant_id}"[:31]
