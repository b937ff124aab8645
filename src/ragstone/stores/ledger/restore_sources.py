"""Sources from elsewhere go on where they were."""

from __future__ import annotations

from ragstone.core.clock import canonical
from ragstone.core.jobs import SourceRecord
from ragstone.stores.database import Connection


def restore_source(connection: Connection, tenant_id: str, source_id: str, record: SourceRecord) -> None:
    """Give a source that was just added what it had: how far it was read, and when it is due."""
    connection.execute(
        "UPDATE sources SET cursor = ?, paused = ?, next_run_at = ?, last_run_at = ?, last_error = ?, created_at = ? "
        "WHERE tenant_id = ? AND id = ?",
        (
            *(connection.dialect.to_json(record.cursor), int(record.paused)),
            canonical(record.next_run_at) if record.next_run_at else None,
            canonical(record.last_run_at) if record.last_run_at else None,
            *(record.last_error, canonical(record.created_at), tenant_id, source_id),
        ),
    )
