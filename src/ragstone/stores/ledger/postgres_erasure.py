"""Removing everything that a PostgreSQL ledger holds of a tenant."""

from __future__ import annotations

from ragstone.stores.database import Connection
from ragstone.stores.ledger.erasure_counts import count_tenant

GUARDED = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'ragstone'::regnamespace AND relkind = 'r' "
    "AND relrowsecurity AND NOT relispartition ORDER BY relname"
)


def forget_tenant(connection: Connection, tenant_id: str) -> None:
    """Remove a tenant's partitions and rows; its name stays until the last of it is gone."""
    connection.execute("SELECT set_config('ragstone.tenant', ?, true)", (tenant_id,))
    connection.execute("SELECT drop_partitions(?)", (tenant_id,))
    for (table,) in connection.execute(GUARDED).fetchall():
        connection.execute(f'DELETE FROM "{table}" WHERE tenant_id = ?', (tenant_id,))


def left_of_tenant(connection: Connection, tenant_id: str) -> dict[str, int]:
    """How many rows there still are of a tenant whose name is gone."""
    connection.execute("SELECT set_config('ragstone.tenant', ?, true)", (tenant_id,))
    return count_tenant(connection, tenant_id)
