"""What a tenant may do now: everything that is done for a tenant asks here first."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from ragstone.core.audit import Auditor, AuditTrail
from ragstone.core.errors import NotFoundError, TenantGone, TenantSuspended
from ragstone.core.model_types import collect_costs
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import QuotaName, Reservation, Tenant, TenantBook
from ragstone.settings.tenants import PROFILE, applied, is_on
from ragstone.settings.tree import Settings

FRESH_SECONDS = 1.0
"""How long a change by another process may go unnoticed, so that what nothing limits costs next to nothing."""
REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class _Known:
    tenant: Tenant
    settings: Settings
    until: float
    revision: int


class TenantAccess:
    """Allows what a tenant may do. A tenant that does not exist yet has no limits. Implements `Admission`."""

    def __init__(
        self,
        book: TenantBook,
        settings: Settings,
        profile: Callable[[str], Mapping[str, Any]],
        clock: Callable[[], float] = time.monotonic,
        trail: AuditTrail | None = None,
    ) -> None:
        self._book = book
        self._settings = settings
        self._profile = profile
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self.audit = Auditor(trail, self.identity)
        """Has what is done recorded."""

    async def query(self, tenant: str) -> None:
        """Let one question through, and count it if questions are limited."""
        found = await self._active(tenant)
        if found is None:
            return
        if found.quotas.cost_per_month is not None:
            await self._book.check(tenant, {"cost_per_month": 0})
        if found.quotas.queries_per_minute is not None:
            await self._book.spend(tenant, "queries_per_minute")

    async def read(self, tenant: str) -> None:
        """Let through what only looks at what there is."""
        await self._active(tenant)

    async def write(self, tenant: str) -> str:
        """Let a change through; the tenant's id, empty while there is none."""
        found = await self._active(tenant)
        if found and found.quotas.cost_per_month is not None:
            await self._book.check(tenant, {"cost_per_month": 0})
        return found.id if found else ""

    async def identity(self, tenant: str) -> str:
        """The tenant's id, which stays when its name changes; empty while there is none."""
        found = await self._look_up(tenant)
        return found.tenant.id if found else ""

    async def seed(self, tenant: str) -> str:
        found = await self._active(tenant)
        return found.seed if found else tenant

    async def is_limited(self, tenant: str) -> bool:
        found = await self._active(tenant)
        return found is not None and found.quotas.limits_stock

    async def expect(self, tenant: str, *, documents: int = 0) -> None:
        if documents and await self.is_limited(tenant):
            await self._book.check(tenant, {"documents": documents})

    @asynccontextmanager
    async def taking_in(
        self, tenant: str, *, documents: int = 0, chunks: int = 0, size: int = 0, queued: bool = False
    ) -> AsyncIterator[None]:
        if not await self.is_limited(tenant):
            yield
            return
        wanted: dict[QuotaName, float] = {"documents": documents, "chunks": chunks, "bytes": size}
        reserving = asyncio.ensure_future(self._book.reserve(tenant, wanted, queued=queued))
        try:
            await asyncio.shield(reserving)
            yield
        finally:
            # What was stored counts itself from now on; what was not needs no room. Cancelled or not, it is let go.
            await asyncio.shield(self._let_go(reserving))

    async def _let_go(self, reserving: asyncio.Future[Reservation]) -> None:
        """Release what was reserved, also if whoever wanted it was cancelled before it was."""
        await asyncio.wait([reserving])
        if not reserving.exception():
            await self._book.release(reserving.result())

    @asynccontextmanager
    async def paying(self, tenant: str) -> AsyncIterator[None]:
        with collect_costs() as bill:
            try:
                yield
            finally:
                with suppress(NotFoundError):  # deleted meanwhile: there is nobody left to pay
                    for kind, usd in bill.items():
                        await asyncio.shield(self._book.charge(tenant, usd, kind))

    async def settings_for(self, tenant: str) -> Settings:
        """The engine's settings with the tenant's own over them."""
        found = await self._look_up(tenant)
        return found.settings if found else self._settings

    async def is_on(self, tenant: str, flag: str) -> bool:
        """Whether a feature is on for a tenant: `flags.NAME` of its settings says so, or the share it falls into."""
        found = await self._look_up(tenant)
        return found is not None and is_on(found.tenant.settings, found.tenant.id, flag)

    async def _active(self, tenant: str) -> Tenant | None:
        found = await self._look_up(tenant)
        if found is None:
            return None
        if found.tenant.state == "suspended":
            raise TenantSuspended(f"tenant '{tenant}' is suspended", remedy=Remedy(Action.RESUME_TENANT, tenant=tenant))
        if found.tenant.state == "deleting":
            raise TenantGone(f"tenant '{tenant}' is being deleted")
        return found.tenant

    async def _look_up(self, tenant: str) -> _Known | None:
        known = self._known.get(tenant)
        revision = self._book.revision
        if known and known.until > self._clock() and known.revision == revision:
            return known
        self._known.pop(tenant, None)
        found = await self._book.get(tenant)
        if found is None:
            return None  # it may be made at any moment, and not be noticed if this were remembered
        profile = found.settings.get(PROFILE)
        tree = self._profile(profile) if profile else {}
        settings = applied(self._settings, found.settings, tree)
        self._known[tenant] = _Known(found, settings, self._clock() + FRESH_SECONDS, revision)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return self._known[tenant]
