"""The book of tenants, on the tables of the ledger that know all of them."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from ragstone.core.audit import AuditEntry, Caller, Outcome, caller
from ragstone.core.clock import now
from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.ids import check_name
from ragstone.core.model_types import Bill
from ragstone.core.tenants import (
    EMPTY,
    STOCK,
    UNLIMITED,
    MonthBudget,
    QuotaName,
    Quotas,
    Reservation,
    Stock,
    Tenant,
    TenantState,
    Usage,
    checked_retention,
    project_month,
)
from ragstone.core.types import Metadata
from ragstone.settings.tenants import packed_settings
from ragstone.stores.control import quotas as quota_rows
from ragstone.stores.control import tenant_rows
from ragstone.stores.control.audit import append_entries
from ragstone.stores.ledger.documents import read_sequence
from ragstone.stores.ledger.ledger import SqlLedger, erasing
from ragstone.stores.sql.database import Connection

logger = logging.getLogger(__name__)
T = TypeVar("T")
NOTHING = Reservation("", "")
Eraser = Callable[[str], Awaitable[None]]
"""Removes what a store beside the ledger holds of the tenant of that name; again when it was cut short."""
FileEraser = Callable[[str, str], Awaitable[None]]


class SqlTenantBook:
    """All tenants. A name that no tenant has is `NotFoundError`, unless it is said otherwise."""

    def __init__(
        self,
        ledger: SqlLedger,
        erasers: Sequence[Eraser] = (),
        clock: Callable[[], datetime] = now,
        files: Sequence[FileEraser] = (),
    ) -> None:
        """`files` remove, by the tenant's name and id, what lies beside the ledger and needs nothing of it."""
        self._ledger = ledger
        self._erasers = erasers
        self._files = files
        self._clock = clock
        self.revision = 0
        """Grows with whatever this process changes about tenants; others may change them, too."""
        self._counted: dict[str, tuple[int, Stock]] = {}
        """The stock of each tenant at a place in its change feed."""

    async def create(self, name: str, quotas: Quotas = UNLIMITED) -> Tenant:
        who = caller()
        made = await self._ledger.control_write(
            lambda connection: tenant_rows.create(connection, name, quotas, self._clock(), who)
        )
        self.revision += 1
        logger.info("tenant '%s' (%s) was created", name, made.id)
        return made

    async def get(self, name: str) -> Tenant | None:
        return await self._ledger.control_read(lambda connection: tenant_rows.read_tenant(connection, name), None)

    async def all(self) -> list[Tenant]:
        """Return the tenants in order of name, those that are being deleted included."""
        return await self._ledger.control_read(tenant_rows.read_tenants, [])

    async def rename(self, old: str, new: str) -> Tenant:
        renamed = await self._change(
            old, "rename", lambda connection: tenant_rows.rename(connection, old, new, self._clock())
        )
        self.revision += 1
        logger.info("tenant '%s' (%s) is called '%s' now", old, renamed.id, new)
        return renamed

    async def suspend(self, name: str) -> Tenant:
        """Refuse everything that is asked for this tenant."""
        return await self._set_state(name, "suspended", "suspend")

    async def resume(self, name: str) -> Tenant:
        return await self._set_state(name, "active", "resume")

    async def delete(self, name: str) -> Tenant:
        """Remove a tenant with all it has; begun again after a crash, it goes on. The tenant as it was."""
        tenant = await self._change(
            name, "delete", lambda connection: tenant_rows.begin_delete(connection, name, self._clock()), "begun"
        )
        self.revision += 1
        await self._erase(tenant)
        return tenant

    async def finish_deletions(self) -> list[str]:
        """Finish what crashes have left half deleted; the names of the tenants that are gone now."""
        begun = [tenant for tenant in await self.all() if tenant.state == "deleting"]
        finished = []
        for tenant in begun:
            try:
                await self._erase(tenant)
                finished.append(tenant.name)
            except RagstoneError as error:
                logger.warning("tenant '%s' is still being deleted: %s", tenant.name, error)
        return finished

    async def set_quotas(self, name: str, quotas: Quotas) -> Tenant:
        return await self._set(name, "quotas", tenant_rows.packed_quotas(quotas), "quotas")

    async def set_retention(self, name: str, days: int | None) -> Tenant:
        return await self._set(name, "retention_days", checked_retention(days), "retention")

    async def set_settings(self, name: str, settings: Metadata) -> Tenant:
        return await self._set(name, "settings", packed_settings(settings), "settings")

    async def reserve(
        self, name: str, amounts: Mapping[QuotaName, float], *, queued: bool = False, waiting: Stock = EMPTY
    ) -> Reservation:
        """Promise room for all of it or raise `QuotaExceeded`. A promise that is not kept lapses after an hour.

        `queued` counts what waits in the queue as well: for what is about to join it. `waiting` is the part of the
        amounts that waits there: it is not counted twice.
        """
        tenant = await self.get(name)
        if tenant is None:
            return NOTHING  # nobody has limited what does not exist yet
        limited = {one: amount for one, amount in amounts.items() if tenant.quotas.of(one) is not None}
        if not limited:
            return NOTHING

        def decide(connection: Connection, stock: Stock) -> Reservation:
            fresh = tenant_rows.existing(connection, name)
            return quota_rows.reserve(connection, fresh, limited, stock, self._clock(), queued=queued, waiting=waiting)

        if any(name in STOCK for name in limited):
            return await self._ledger.admit(name, self._all_stock if queued else self._taken_stock, decide)
        return await self._ledger.control_write(lambda connection: decide(connection, Stock()))

    async def check(self, name: str, amounts: Mapping[QuotaName, float]) -> None:
        """Raise what `reserve` would raise if nothing were promised: what is promised may be given back."""
        tenant = await self.get(name)
        if tenant is None:
            return
        counts = any(name in STOCK for name in amounts)
        stock = await self._ledger.read(name, self._taken_stock) if counts else Stock()
        await self._ledger.control_read(
            lambda connection: quota_rows.check(connection, tenant, amounts, stock, self._clock(), {}), None
        )

    async def release(self, reservation: Reservation) -> None:
        """Give back what was reserved: it is counted where it is stored, or was not used."""
        if reservation.amounts:
            await self._ledger.control_write(lambda connection: quota_rows.release(connection, reservation))

    async def spend(self, name: str, quota: QuotaName, amount: float = 1) -> None:
        """Reserve and settle at once: use some of what is limited by time, or raise `QuotaExceeded`."""
        await self._write(
            name,
            lambda connection: quota_rows.spend(
                connection, tenant_rows.existing(connection, name), quota, amount, self._clock()
            ),
        )

    async def charge_bill(self, name: str, bill: Bill, free_units: Mapping[str, int] | None = None) -> None:
        """Write down all of a bill, or nothing; `free_units` of a kind cost nothing each day, all tenants together."""
        for kind, usd in bill.items():
            _check_cost(kind, usd)
        if bill or bill.units:
            await self._write(
                name,
                lambda connection: quota_rows.add_bill(
                    connection, tenant_rows.existing(connection, name).id, bill, free_units or {}, self._clock()
                ),
            )

    async def charge_day(self, name: str, kind: str, usd_per_chunk: float) -> None:
        """Write down the cost of keeping the chunks for today, unless that was done."""
        _check_cost(kind, usd_per_chunk)
        usd = usd_per_chunk * (await self._ledger.read(name, self._live_stock)).chunks
        if usd:
            await self._write(
                name,
                lambda connection: quota_rows.add_once_a_day(
                    connection, tenant_rows.existing(connection, name).id, quota_rows.COST + kind, usd, self._clock()
                ),
            )

    async def budget(self, name: str) -> MonthBudget | None:
        """Return the budget of the month that runs; None for a tenant that has none."""
        moment = self._clock()

        def read(connection: Connection) -> MonthBudget | None:
            tenant = tenant_rows.existing(connection, name)
            if tenant.quotas.cost_per_month is None:
                return None
            spent = math.fsum(quota_rows.costs(connection, tenant.id, moment).values())
            return MonthBudget(tenant.quotas.cost_per_month, spent, moment)

        return await self._ledger.control_read(read, None)

    async def usage(self, name: str) -> Usage:
        moment = self._clock()

        def read(connection: Connection) -> Usage | None:
            tenant_id = tenant_rows.existing(connection, name).id
            costs = quota_rows.costs(connection, tenant_id, moment)
            return Usage(
                stock=Stock(),
                queued=Stock(),
                queries=int(quota_rows.queries(connection, tenant_id, moment)),
                cost=math.fsum(costs.values()),
                cost_by_kind=costs,
                reserved=quota_rows.read_reserved(connection, tenant_id, moment),
                units_by_kind=quota_rows.units(connection, tenant_id, moment),
                cost_by_month=quota_rows.costs_by_month(connection, tenant_id),
                web_queries=quota_rows.units_by_day(connection, tenant_id, "web", moment),
            )

        found = await self._ledger.control_read(read, None)
        if found is None:
            raise tenant_rows.unknown(name)
        stock = await self._ledger.read(name, self._kept_stock)
        conversations = await self._ledger.read(name, quota_rows.count_conversations, moment)
        return replace(
            found,
            stock=stock,
            queued=await self._ledger.read(name, quota_rows.queued_stock),
            projection=project_month(stock.documents, conversations).by_kind(),
        )

    async def list_expired(self, name: str, before: datetime, limit: int = 100) -> list[str]:
        """Return documents, also failed ones and archives, that were not updated since, oldest first, by id."""
        return await self._ledger.read(name, quota_rows.expired_documents, before, limit)

    def _live_stock(self, connection: Connection, tenant_id: str) -> Stock:
        # Counting takes longer the more there is, and what is counted changes only with the change feed.
        sequence = read_sequence(connection, tenant_id)
        known = self._counted.get(tenant_id)
        if known is None or known[0] != sequence:
            known = sequence, quota_rows.live_stock(connection, tenant_id)
            self._counted[tenant_id] = known
        return known[1]

    def _kept_stock(self, connection: Connection, tenant_id: str) -> Stock:
        live, files = (self._live_stock(connection, tenant_id), quota_rows.kept_originals(connection, tenant_id))
        return replace(live, bytes=live.bytes + files, originals=files)

    def _taken_stock(self, connection: Connection, tenant_id: str) -> Stock:
        """Return the stock that a document about to be stored is checked against, with originals that come."""
        kept = self._kept_stock(connection, tenant_id)
        return replace(kept, bytes=kept.bytes + quota_rows.coming_originals(connection, tenant_id))

    def _all_stock(self, connection: Connection, tenant_id: str) -> Stock:
        kept, queued = self._kept_stock(connection, tenant_id), quota_rows.queued_stock(connection, tenant_id)
        return replace(kept, documents=kept.documents + queued.documents, bytes=kept.bytes + queued.bytes)

    async def _set_state(self, name: str, state: TenantState, action: str) -> Tenant:
        changed = await self._set(name, "state", state, action)
        logger.info("tenant '%s' (%s) is %s now", name, changed.id, state)
        return changed

    async def _set(self, name: str, column: str, value: str | int | None, action: str) -> Tenant:
        changed = await self._change(
            name, action, lambda connection: tenant_rows.change(connection, name, column, value)
        )
        self.revision += 1
        return changed

    async def _change(
        self, name: str, action: str, change: Callable[[Connection], Tenant], outcome: Outcome = "done"
    ) -> Tenant:
        """Change a tenant, and record in the same transaction who did."""
        who = caller()

        def change_and_record(connection: Connection) -> Tenant:
            changed = change(connection)
            append_entries(connection, [self._entry(changed, who, action, outcome, name)])
            return changed

        return await self._write(name, change_and_record)

    def _entry(self, tenant: Tenant, who: Caller, action: str, outcome: Outcome, name: str) -> AuditEntry:
        return AuditEntry(
            self._clock(),
            tenant.id,
            name,
            who.actor,
            f"tenant.{action}",
            outcome,
            target=tenant.name,
            request_id=who.request_id,
        )

    async def _write(self, name: str, work: Callable[[Connection], T]) -> T:
        if await self.get(name) is None:  # asking for what is not there must write nothing
            raise tenant_rows.unknown(name)
        return await self._ledger.control_write(work)

    async def _erase(self, tenant: Tenant) -> None:
        """Erase a tenant step by step. Each may be done again: until the last one, it is still being deleted."""
        allowed = erasing.set(tenant.id)
        try:
            for erase in self._erasers:
                await erase(tenant.name)
        finally:
            erasing.reset(allowed)
        for remove in self._files:
            await remove(tenant.name, tenant.id)
        await self._ledger.forget(tenant.name, tenant.id)
        await self._finish(tenant)
        # Once more, for callers that had been let in before: with the name gone, none can come after this.
        await self._ledger.forget(tenant.name, tenant.id)
        for remove in self._files:
            await remove(tenant.name, tenant.id)
        self._counted.pop(tenant.id, None)
        self.revision += 1
        logger.info("tenant '%s' (%s) was deleted with all it had", tenant.name, tenant.id)

    async def _finish(self, tenant: Tenant) -> None:
        """Let go of the name, and record in the same transaction that all else is gone."""
        entry = self._entry(tenant, caller(), "delete", "done", tenant.name)

        def finish_and_record(connection: Connection) -> None:
            tenant_rows.finish_delete(connection, tenant.id)
            append_entries(connection, [entry])

        await self._ledger.control_write(finish_and_record)


def _check_cost(kind: str, usd: float) -> None:
    check_name(kind, "kind of cost")
    if not 0 <= usd < math.inf:
        raise InputError(f"a cost of {usd} cannot be charged")
