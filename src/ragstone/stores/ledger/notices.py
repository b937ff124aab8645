"""Notices of how jobs ended, which are also the outbox of the webhook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragstone.core.clock import parse_moment
from ragstone.core.jobs import Notice
from ragstone.stores.database import Connection

NOTICE = (
    "SELECT id, kind, job_id, document_id, uri, message, created_at, seen FROM notices WHERE tenant_id = ?"
)
KEPT = 1000


def read_notices(connection: Connection, tenant_id: str, unread: bool, limit: int) -> list[Notice]:
    """Newest first."""
    chosen = " AND seen = 0" if unread else ""
    rows = connection.execute(f"{NOTICE}{chosen} ORDER BY id DESC LIMIT ?", (tenant_id, limit))
    return [_notice(row) for row in rows]


def mark_read(connection: Connection, tenant_id: str, notices: Sequence[int]) -> None:
    connection.executemany(
        "UPDATE notices SET seen = 1 WHERE tenant_id = ? AND id = ?", [(tenant_id, one) for one in notices]
    )


def warn(
    connection: Connection, tenant_id: str, uri: str, message: str, moment: str, quiet_since: str
) -> bool:
    """Write down a warning unless there is one of the same thing since then."""
    told = connection.execute(
        "SELECT 1 FROM notices WHERE tenant_id = ? AND kind = 'warning' AND uri = ? AND created_at >= ?",
        (tenant_id, uri, quiet_since),
    ).fetchone()
    if told:
        return False
    connection.execute(
        "INSERT INTO notices (tenant_id, kind, job_id, document_id, uri, message, created_at, seen, sent) "
        "VALUES (?, 'warning', '', '', ?, ?, ?, 0, 0)",
        (tenant_id, uri, message, moment),
    )
    return True


def unsent(connection: Connection, tenant_id: str, limit: int) -> list[Notice]:
    """What the webhook has not been told yet, oldest first."""
    rows = connection.execute(f"{NOTICE} AND sent = 0 ORDER BY id LIMIT ?", (tenant_id, limit))
    return [_notice(row) for row in rows]


def mark_sent(connection: Connection, tenant_id: str, notice: int) -> None:
    connection.execute("UPDATE notices SET sent = 1 WHERE tenant_id = ? AND id = ?", (tenant_id, notice))
    connection.execute(
        "DELETE FROM notices WHERE tenant_id = ? AND sent = 1 AND seen = 1 AND id < "
        "(SELECT id FROM notices WHERE tenant_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (tenant_id, tenant_id, KEPT),
    )


def _notice(row: Sequence[Any]) -> Notice:
    created = parse_moment(row[6])
    assert created is not None
    identity, kind, job_id, document_id, uri, message = row[:6]
    return Notice(identity, kind, job_id, document_id, uri, message, created, bool(row[7]))


def forget_notices(connection: Connection, tenant_id: str, kb_id: int, source: str = "") -> None:
    """Remove what was told of a kb, or of the jobs of one of its sources."""
    if not source:
        connection.execute(
            "DELETE FROM notices WHERE tenant_id = ? AND kind = 'warning' AND uri = "
            "(SELECT 'quality:' || name FROM knowledge_bases WHERE tenant_id = ? AND id = ?)",
            (tenant_id, tenant_id, kb_id),
        )
    narrowed, given = (" AND source = ?", (source,)) if source else ("", ())
    connection.execute(
        "DELETE FROM notices WHERE tenant_id = ? AND job_id IN "
        f"(SELECT id FROM jobs WHERE tenant_id = ? AND kb_id = ?{narrowed})",
        (tenant_id, tenant_id, kb_id, *given),
    )
