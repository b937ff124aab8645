"""Replies to requests with an idempotency key, in the control tables.

A row without an owner holds a reply. One with an owner is a request under way; its lease says for how long that is
believed, because a process that was killed takes nothing back. Such a row is `sealed` with no bytes once its reply is
not to be kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ragstone.core.errors import QuotaExceeded
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.sql.database import Connection

LEASE_SECONDS = 20.0
KEPT_SECONDS = 24 * 3600.0
MOST_REPLIES = 10_000
"""Of one tenant at a time; then the oldest hundredth goes."""


@dataclass(frozen=True, slots=True)
class ReplyState:
    """The state of a request: `begun` here, `running` elsewhere, `other` request, or `done` with its reply."""

    state: Literal["begun", "running", "other", "done"]
    sealed: bytes | None = None
    """The reply of a request that is done; None if it was too large to be kept."""


class SqlReplyBook:
    """Lets each request be done once, and keeps its reply for a day."""

    def __init__(self, ledger: SqlLedger, clock: Callable[[], float] = time.time) -> None:
        self._ledger = ledger
        self._clock = clock

    async def begin(self, request_key: str, tenant_id: str, fingerprint: str, owner: str) -> ReplyState:
        """Claim a request for an owner, or return what has become of it; `QuotaExceeded` if too many are under way."""
        moment = self._clock()
        return await self._ledger.control_write(
            lambda connection: _begin(connection, request_key, tenant_id or None, fingerprint, owner, moment)
        )

    async def renew(self, request_key: str, owner: str) -> None:
        """Say that the owner still works on it."""
        until = self._clock() + LEASE_SECONDS
        await self._ledger.control_write(
            lambda connection: (
                connection.execute(
                    "UPDATE stored_replies SET lease_until = ? WHERE id = ? AND owner = ?", (until, request_key, owner)
                ).rowcount
            )
        )

    async def finish(self, request_key: str, owner: str, sealed: bytes | None) -> None:
        """Keep the reply of a request that is done, unless it was forgotten meanwhile; None if it is too large."""
        await self._ledger.control_write(lambda connection: _finish(connection, request_key, owner, sealed))

    async def release(self, request_key: str, owner: str) -> None:
        """Forget a request that came to nothing: it may be made again."""
        await self._ledger.control_write(
            lambda connection: (
                connection.execute(
                    "DELETE FROM stored_replies WHERE id = ? AND owner = ?", (request_key, owner)
                ).rowcount
            )
        )

    async def forget(self, tenant_id: str) -> None:
        """Forget the replies to a tenant, also those under way: they may quote what is erased."""
        await self._ledger.control_write(lambda connection: _forget(connection, tenant_id))


def _begin(
    connection: Connection, request_key: str, tenant_id: str | None, fingerprint: str, owner: str, moment: float
) -> ReplyState:
    connection.execute("DELETE FROM stored_replies WHERE expires_at < ?", (moment,))
    row = connection.execute(
        "SELECT fingerprint, owner, lease_until, sealed FROM stored_replies WHERE id = ?", (request_key,)
    ).fetchone()
    if row is None:
        kept = connection.execute("SELECT count(*) FROM stored_replies WHERE tenant_id = ?", (tenant_id,)).fetchone()
        if kept[0] >= MOST_REPLIES and not _drop_oldest(connection, tenant_id, moment):
            raise QuotaExceeded(
                f"{MOST_REPLIES} requests with an idempotency key are under way already",
                hint="wait until some of them are done",
                retry_after=60,
            )
        connection.execute(
            "INSERT INTO stored_replies (id, tenant_id, fingerprint, owner, lease_until, expires_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (request_key, tenant_id, fingerprint, owner, moment + LEASE_SECONDS, moment + KEPT_SECONDS),
        )
        return ReplyState("begun")
    known, holder, lease, sealed = row
    if known != fingerprint:
        return ReplyState("other")
    if not holder:
        return ReplyState("done", None if sealed is None else bytes(sealed))
    if lease > moment:
        return ReplyState("running")
    connection.execute(
        "UPDATE stored_replies SET owner = ?, lease_until = ?, sealed = NULL WHERE id = ?",
        (owner, moment + LEASE_SECONDS, request_key),
    )
    return ReplyState("begun")


def _drop_oldest(connection: Connection, tenant_id: str | None, moment: float) -> int:
    """Forget the oldest requests of a tenant that nobody works on; return how many were forgotten."""
    # To find them takes 50 ms: it is not done for each request.
    most = max(1, MOST_REPLIES // 100)
    return connection.execute(
        "DELETE FROM stored_replies WHERE id IN (SELECT id FROM stored_replies WHERE tenant_id = ? "
        "AND lease_until <= ? ORDER BY expires_at, id LIMIT ?)",
        (tenant_id, moment, most),
    ).rowcount


def _finish(connection: Connection, request_key: str, owner: str, sealed: bytes | None) -> None:
    done = "UPDATE stored_replies SET owner = '', lease_until = 0, sealed = ? WHERE id = ? AND owner = ?"
    if not connection.execute(f"{done} AND sealed IS NULL", (sealed, request_key, owner)).rowcount:
        connection.execute(done, (None, request_key, owner))  # it was forgotten meanwhile


def _forget(connection: Connection, tenant_id: str) -> None:
    for sealed, which in ((None, "owner = ''"), (b"", "owner <> ''")):
        connection.execute(f"UPDATE stored_replies SET sealed = ? WHERE tenant_id = ? AND {which}", (sealed, tenant_id))
