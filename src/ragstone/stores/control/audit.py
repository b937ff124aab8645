"""The audit record, beside the names of the tenants: it outlives them, and all processes and machines share it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ragstone.core.audit import DETAIL_CHARS, NAME_CHARS, TARGET_CHARS, AuditChain, AuditEntry, Kind
from ragstone.core.background import BatchWriter
from ragstone.core.clock import canonical, now
from ragstone.core.errors import RagstoneError
from ragstone.stores.control.audit_chain import PRUNE, append_rows, record_gaps, verify_chain
from ragstone.stores.sql.database import Connection, in_parts, marks

if TYPE_CHECKING:
    from ragstone.stores.ledger.ledger import SqlLedger

logger = logging.getLogger(__name__)
PRUNED_EVERY = timedelta(hours=1)
ONE_READING = timedelta(seconds=1)
LOST, READ = "audit.lost", "document.read"

MOST = 1_000_000
"""Of what was looked at, and of what was refused, the newest: a flood of questions does not fill the disk."""
PIECE = 20_000
"""The number of entries that are pruned at once: other users of these tables wait for that."""
CHANGE_DAYS = 365
"""Days that changes and refusals are kept where reads are not recorded at all."""
KB_CHARS = 63
COLUMNS = (
    "moment, tenant_id, tenant, actor, action, outcome, target, kb, count, document_ids, counts, detail, request_id"
)


class SqlAuditTrail:
    """Implements `core.audit.AuditTrail`. With 0 days only changes and refusals are recorded."""

    def __init__(self, ledger: SqlLedger, days: int, clock: Callable[[], datetime] = now) -> None:
        self._ledger = ledger
        self._days = days
        self._clock = clock
        self._noted: BatchWriter[AuditEntry] = BatchWriter(self._write)
        self._failed = 0
        self._told = 0
        """The number of dropped or unwritten entries that were recorded as lost."""
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
            lambda connection: _read(connection, tenant_id, tenant, action, since, limit), []
        )

    async def verify(self, noted: str = "") -> AuditChain:
        """Follow the chain of the record; `noted` is the hash of an entry that must be in it."""
        await self.flush()
        return await self._ledger.control_read(lambda connection: verify_chain(connection, noted), AuditChain(0, 0, ""))

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
            append_entries(connection, entries)
            if due:
                more = _prune(connection, self._days, moment)
                self._prune_after = moment if more else moment + PRUNED_EVERY

        return work


def append_entries(connection: Connection, entries: Iterable[AuditEntry]) -> None:
    """Add entries at the end."""
    append_rows(
        connection,
        [
            (
                canonical(entry.moment),
                entry.tenant_id,
                entry.tenant,
                _short(entry.actor, NAME_CHARS),
                entry.action,
                entry.outcome,
                _short(entry.target, TARGET_CHARS),
                _short(entry.kb, KB_CHARS),
                entry.count,
                " ".join(entry.document_ids),
                json.dumps(dict(entry.counts)) if entry.counts else "",
                _short(entry.detail, DETAIL_CHARS),
                _short(entry.request_id, NAME_CHARS),
                entry.kind,
            )
            for entry in entries
        ],
    )


def recorded_tenants(connection: Connection) -> set[str]:
    """Return the ids of all tenants that the record has entries of, also of those that are gone."""
    return {tenant_id for (tenant_id,) in connection.execute("SELECT DISTINCT tenant_id FROM audit").fetchall()}


def _read(
    connection: Connection,
    tenant_id: str | None,
    tenant: str | None,
    action: str | None,
    since: datetime | None,
    limit: int,
) -> list[AuditEntry]:
    """Newest first. `action` is one, or the first half of several: `tenant` stands for `tenant.suspend`, too."""
    conditions: list[tuple[str, Sequence[Any]]] = []
    if tenant_id is not None:
        conditions.append(("tenant_id = ?", [tenant_id]))
    if tenant is not None:
        conditions.append(("(tenant = ? OR tenant_id IN (SELECT id FROM tenants WHERE name = ?))", [tenant] * 2))
    if action is not None:
        conditions.append(("(action = ? OR substr(action, 1, ?) = ?)", [action, len(action) + 1, f"{action}."]))
    if since is not None:
        conditions.append(("moment >= ?", [canonical(since)]))
    where = f"WHERE {' AND '.join(sql for sql, _ in conditions)}" if conditions else ""
    values = [value for _, own in conditions for value in own]
    rows = connection.execute(f"SELECT {COLUMNS} FROM audit {where} ORDER BY id DESC LIMIT ?", (*values, limit))
    return [_entry(row) for row in rows.fetchall()]


def _prune(connection: Connection, days: int, moment: datetime) -> bool:
    """Remove what is too old or too much, a piece at a time; whether there may be more."""
    oldest = canonical(moment - timedelta(days=days or CHANGE_DAYS))
    first, last = connection.execute("SELECT min(id), max(id) FROM audit").fetchone()
    many = first is not None and last - first >= MOST  # else there is nothing to count
    before: dict[Kind, str] = {"seen": oldest if days else canonical(moment), "refused": oldest, "change": oldest}
    gone = []
    for kind, limit in before.items():
        newest = _too_many(connection, kind) if many and kind != "change" else ""
        gone.append(_remove(connection, kind, max(limit, newest)))
    if removed := [link for links in gone for link in links]:
        digest = record_gaps(connection, removed)
        append_entries(connection, [AuditEntry(moment, "", "", "", PRUNE, count=len(removed), detail=digest)])
    return max(map(len, gone)) == PIECE


def _too_many(connection: Connection, kind: Kind) -> str:
    """Return the moment up to which entries of a kind are more than are kept; empty when they are not."""
    found = connection.execute(
        "SELECT moment FROM audit WHERE kind = ? ORDER BY moment DESC LIMIT 1 OFFSET ?", (kind, MOST)
    ).fetchone()
    # Moments are whole seconds: with the one that is too many goes all of its second.
    return f"{found[0]}~" if found else ""


def _remove(connection: Connection, kind: Kind, before: str) -> list[tuple[str, str]]:
    """Remove the oldest entries of a kind; return the hash before each and its own."""
    found = connection.execute(
        "SELECT id, previous, hash FROM audit WHERE kind = ? AND moment < ? ORDER BY moment LIMIT ?",
        (kind, before, PIECE),
    ).fetchall()
    for ids in in_parts([row[0] for row in found]):
        connection.execute(f"DELETE FROM audit WHERE id IN ({marks(ids)})", ids)
    return [(row[1], row[2]) for row in found]


def _short(text: str, most: int) -> str:
    """Return text that every database takes: no NUL, no half characters, no more than fits."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()[:most]


def _entry(row: Sequence[Any]) -> AuditEntry:
    moment, tenant_id, tenant, actor, action, outcome, target, kb, count, ids, counts, detail, request_id = row
    return AuditEntry(
        moment=datetime.fromisoformat(moment),
        tenant_id=tenant_id,
        tenant=tenant,
        actor=actor,
        action=action,
        outcome=outcome,
        target=target,
        kb=kb,
        count=count,
        document_ids=tuple(ids.split()),
        counts=json.loads(counts) if counts else {},
        detail=detail,
        request_id=request_id,
    )
