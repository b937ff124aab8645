"""The audit record, beside the names of the tenants: it outlives them, and all processes and machines share it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from ragstone.core.audit import AuditEntry
from ragstone.core.clock import now
from ragstone.core.errors import RagstoneError
from ragstone.stores.batch_writer import Batched
from ragstone.stores.control import audit_rows
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.sql.database import Connection

logger = logging.getLogger(__name__)
PRUNED_EVERY = timedelta(hours=1)
ONE_READING = timedelta(seconds=1)
LOST, READ = "audit.lost", "document.read"


class SqlAuditTrail:
    """Implements `core.audit.AuditTrail`. With 0 days only changes and refusals are recorded."""

    def __init__(self, ledger: SqlLedger, days: int, clock: Callable[[], datetime] = now) -> None:
        self._ledger = ledger
        self._days = days
        self._clock = clock
        self._noted: Batched[AuditEntry] = Batched(self._write)
        self._failed = 0
        self._told = 0
        """How many of those that were dropped, or could not be written, are recorded as lost."""
        self._read: tuple[str, str, str, datetime] | None = None
        self._prune_after: datetime | None = None

    def note(self, entry: AuditEntry) -> None:
        if entry.action == READ and entry.outcome == "done":
            # Its facts, its text and its chunks are asked for one after the other: that is one reading.
            last, self._read = self._read, (entry.tenant_id, entry.actor, entry.target, entry.moment)
            if last and last[:3] == self._read[:3] and entry.moment - last[3] < ONE_READING:
                return
        if self._days or entry.kind != "seen":
            self._noted.add(entry)

    async def record(self, entries: Sequence[AuditEntry]) -> None:
        if entries:
            await self.flush()  # what was seen before comes before
            await self._ledger.control_write(self._work(entries))

    async def flush(self) -> None:
        await self._noted.flush()

    async def close(self) -> None:
        """Write what waits, for the last time."""
        await self.flush()

    async def entries(
        self,
        *,
        tenant_id: str | None,
        tenant: str | None,
        action: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> list[AuditEntry]:
        await self.flush()
        return await self._ledger.control_read(
            lambda connection: audit_rows.read(connection, tenant_id, tenant, action, since, limit), []
        )

    async def _write(self, entries: list[AuditEntry]) -> None:
        missing = self._noted.dropped + self._failed
        lost = missing - self._told
        told = [AuditEntry(self._clock(), "", "", "", LOST, "failed", count=lost)] if lost else []
        try:
            await self._ledger.control_write(self._work([*entries, *told]))
        except RagstoneError as error:
            # The next batch that can be written says how many are missing.
            self._failed += len(entries)
            logger.warning("%d entries of the audit record were not written: %s", len(entries), error)
        else:
            self._told = missing

    def _work(self, entries: Sequence[AuditEntry]) -> Callable[[Connection], None]:
        moment = self._clock()
        due = self._prune_after is None or moment >= self._prune_after

        def work(connection: Connection) -> None:
            audit_rows.append(connection, entries)
            if due:
                more = audit_rows.prune(connection, self._days, moment)
                self._prune_after = moment if more else moment + PRUNED_EVERY

        return work
