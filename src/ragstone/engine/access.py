"""A tenant's permission to do things, and the tenant, actor and request that a workspace is bound to."""

from __future__ import annotations

import asyncio
import calendar
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from ragstone.core.audit import Auditor, AuditTrail, acting_as, working_for
from ragstone.core.background import closed_error
from ragstone.core.clock import now
from ragstone.core.errors import (
    AccessDenied,
    ModelError,
    NotFoundError,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    TenantGone,
    suspended,
    unknown_kb,
)
from ragstone.core.model_types import Bill, collect_costs
from ragstone.core.protocols import Embedder
from ragstone.core.tenants import EMPTY, MonthBudget, QuotaName, Reservation, Stock, Tenant
from ragstone.core.types import KnowledgeBase
from ragstone.settings.flags import PHASES, is_on
from ragstone.settings.tenants import FLAGS, PROFILE, apply_tenant_settings
from ragstone.settings.tree import Settings
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.documents import kb_of

if TYPE_CHECKING:
    from ragstone.engine.components import Components

logger = logging.getLogger(__name__)
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
FRESH_SECONDS = 1.0
"""Seconds that a change by another process may go unnoticed, so that unlimited tenants cost next to nothing."""
MOST_NAMED, MOST_COMPARED = 5, 500
"""Knowledge bases that are named where one is not found, and those that are looked at for similar names."""
REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class _Known:
    tenant: Tenant
    settings: Settings
    phases_off: frozenset[str]
    until: float
    revision: int


class TenantAccess:
    """Allows what a tenant may do. A tenant that does not exist yet has no limits. Implements `Admission`."""

    def __init__(
        self,
        book: SqlTenantBook,
        settings: Settings,
        profile: Callable[[str], Mapping[str, Any]],
        clock: Callable[[], float] = time.monotonic,
        trail: AuditTrail | None = None,
        on_cost: Callable[[str, str, float, float], None] | None = None,
    ) -> None:
        """`on_cost` hears which tenant was charged for which kind of thing, how many US dollars and units."""
        self._book = book
        self._settings = settings
        self._profile = profile
        self._clock = clock
        self._on_cost = on_cost
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._closed = False
        self._owed: dict[str, Bill] = {}
        """Costs that could not be written yet."""
        self.audit = Auditor(trail, self.identity)
        """Has what is done recorded."""

    def close(self) -> None:
        """Refuse whatever is asked for from now on."""
        self._closed = True

    def require_open(self) -> None:
        """Raise `StoreError` once the engine is closed: files would be opened again and stay open."""
        if self._closed:
            raise closed_error("the engine")

    async def query(self, tenant: str) -> None:
        """Let one question through, and count it if questions are limited."""
        found = await self._active(tenant)
        if found is not None and found.quotas.queries_per_minute is not None:
            try:
                await self._book.spend(tenant, "queries_per_minute")
            except (StoreFull, StoreReadOnly) as error:
                # Reading goes on where nothing can be written.
                logger.warning("cannot count a question: %s", error)

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
        """Return the tenant's id, which stays when its name changes; empty while there is none."""
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
        self,
        tenant: str,
        *,
        documents: int = 0,
        chunks: int = 0,
        size: int = 0,
        queued: bool = False,
        waiting: Stock = EMPTY,
    ) -> AsyncIterator[None]:
        if not await self.is_limited(tenant):
            yield
            return
        wanted: dict[QuotaName, float] = {"documents": documents, "chunks": chunks, "bytes": size}
        reserving = asyncio.ensure_future(self._book.reserve(tenant, wanted, queued=queued, waiting=waiting))
        try:
            await asyncio.shield(reserving)
            yield
        finally:
            # What was stored counts itself from now on; what was not needs no room. Cancelled or not, it is let go.
            await asyncio.shield(self._let_go(reserving))

    async def _let_go(self, reserving: asyncio.Future[Reservation]) -> None:
        """Release what was reserved, also if its caller was cancelled before it was."""
        await asyncio.wait([reserving])
        if not reserving.exception():
            await self._book.release(reserving.result())

    @asynccontextmanager
    async def paying(self, tenant: str) -> AsyncIterator[None]:
        with collect_costs() as bill:
            try:
                yield
            finally:
                await asyncio.shield(self._charge(tenant, bill))

    @asynccontextmanager
    async def asking(self, tenant: str) -> AsyncIterator[MonthBudget | None]:
        """Charge the tenant for a question; once its budget is spent, no paid service is asked."""
        found = await self._active(tenant)
        limited = found is not None and found.quotas.cost_per_month is not None
        budget = await self._book.budget(tenant) if limited else None
        with collect_costs(budget.refusal() if budget else None) as bill:
            try:
                yield budget
            finally:
                await asyncio.shield(self._charge(tenant, bill))

    async def _charge(self, tenant: str, bill: Bill) -> None:
        if not bill and not bill.units:
            return
        if self._on_cost:
            for kind in {**bill, **bill.units}:
                self._on_cost(tenant, kind, bill.get(kind, 0.0), bill.units.get(kind, 0.0))
        owed = self._owed.pop(tenant, None)
        if owed:
            _add_bill(bill, owed)
        free = {"web": self._settings.prices.free_web_queries(self._settings.web.kind)}
        try:
            await self._book.charge_bill(tenant, bill, free)
        except NotFoundError:
            pass  # deleted meanwhile: there is nobody left to pay
        except (StoreFull, StoreReadOnly, StoreBusy) as error:
            # What was found is not lost for it, and the cost is written with the next one.
            logger.warning("cannot write down a cost of tenant '%s' yet: %s", tenant, error)
            self._owed[tenant] = bill

    async def charge_store(self, tenant: str) -> None:
        """Charge a tenant once a day for its vectors, where the store costs money."""
        month = self._settings.prices.vector_month(self._settings.store.vectors.kind)
        if month:
            moment = now()
            days = calendar.monthrange(moment.year, moment.month)[1]
            await self._book.charge_day(tenant, "vectors", month / days)

    async def settings_for(self, tenant: str) -> Settings:
        """Return the engine's settings with the tenant's own over them."""
        found = await self._look_up(tenant)
        return found.settings if found else self._settings

    async def is_on(self, tenant: str, flag: str) -> bool:
        """Return whether a feature is on for a tenant, by `flags.NAME` of its settings or the share it falls into."""
        found = await self._look_up(tenant)
        return self._is_on(found.tenant if found else None, flag)

    async def phases_off(self, tenant: str) -> frozenset[str]:
        """Return the phases of the rollout that are off for a tenant."""
        found = await self._look_up(tenant)
        return found.phases_off if found else self._phases_off(None)

    def _phases_off(self, tenant: Tenant | None) -> frozenset[str]:
        return frozenset(phase for phase in PHASES if not self._is_on(tenant, phase))

    def _is_on(self, tenant: Tenant | None, flag: str) -> bool:
        own = tenant.settings.get(f"{FLAGS}{flag}") if tenant else None
        return is_on(flag, tenant.id if tenant else "", own, self._settings.flags)

    async def _active(self, tenant: str) -> Tenant | None:
        found = await self._look_up(tenant)
        if found is None:
            return None
        if found.tenant.state == "suspended":
            raise suspended(tenant)
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
        settings = apply_tenant_settings(self._settings, found.settings, tree)
        off = self._phases_off(found)
        self._known[tenant] = _Known(found, settings, off, self._clock() + FRESH_SECONDS, revision)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return self._known[tenant]


def _add_bill(bill: Bill, other: Bill) -> None:
    for kind, usd in other.items():
        bill[kind] += usd
    for kind, units in other.units.items():
        bill.units[kind] += units


class TenantScope:
    """Binds the components of an engine to one tenant."""

    def __init__(
        self,
        components: Components,
        tenant: str,
        actor: str,
        request_id: str,
        kbs: tuple[str, ...] = (),
        *,
        remote: bool = False,
    ) -> None:
        """`kbs` are the knowledge bases that it is limited to, empty for all; `remote` is a caller over the network."""
        self.components = components
        self.settings = components.settings
        self.actor = actor
        self.request_id = request_id
        self.is_remote = remote
        self._tenant = tenant
        self._kbs = kbs

    @property
    def tenant(self) -> str:
        """The tenant's name; an engine that is closed serves none."""
        self.components.access.require_open()
        return self._tenant

    async def admit(self) -> str:
        """Return the tenant's name; one that is suspended is refused."""
        await self.components.access.read(self.tenant)
        return self._tenant

    async def write(self) -> str:
        """Return the tenant's name; one that is suspended or has spent its budget is refused."""
        await self.components.access.write(self.tenant)
        return self._tenant

    @property
    def is_limited(self) -> bool:
        """True when only some of the tenant's kbs exist for the caller."""
        return bool(self._kbs)

    def sees(self, kb: str) -> bool:
        """Return whether a kb exists for the caller, as far as its limits go."""
        return not self._kbs or kb in self._kbs

    async def sees_document(self, document_id: str) -> bool:
        """Return whether a document may exist for the caller: it is not in a kb that the caller does not see."""
        if not self._kbs:
            return True
        return await self.components.ledger.read(self._tenant, kb_of, document_id) in self._kbs

    def kb_name(self, kb: str | None) -> str:
        """Return the name of the kb that is meant; one that the caller does not see is unknown."""
        name = self.settings.kb if kb is None else kb
        if not self.sees(name):
            if kb is None and len(self._kbs) == 1:
                return self._kbs[0]
            raise unknown_kb(name, self._tenant)
        return name

    async def kb(self, kb: str | None) -> KnowledgeBase:
        """Return the kb that is meant, or raise `NotFoundError`."""
        tenant, name = await self.admit(), self.kb_name(kb)
        ledger = self.components.ledger.of(tenant)
        found = await ledger.kb(name)
        if found is None:
            others = [kb.name for kb in await ledger.kbs() if self.sees(kb.name)][:MOST_COMPARED]
            raise unknown_kb(name, tenant, get_close_matches(name, others, MOST_NAMED, 0.0))
        return found

    async def embedder_of(self, kb: KnowledgeBase) -> Embedder | None:
        """Return the embedder of a kb's live Space; None when it is not available, which its searches then report."""
        if kb.space is None:
            return None
        try:
            return await self.components.embedders.for_space(kb.space)
        except ModelError:
            return None

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Have what the block does recorded under the tenant, actor and request of the workspace."""
        with working_for(self._tenant), acting_as(self.actor or None, self.request_id or None):
            yield


class WorkspacePart:
    """A part of a workspace: what one tenant does with the components that all share."""

    def __init__(self, scope: TenantScope) -> None:
        self._scope = scope
        self._components = scope.components
        self._ledger = scope.components.ledger
        self._access = scope.components.access


def record_caller(part: type[T]) -> type[T]:
    """Have every public coroutine of a part recorded under the actor and request of its `_scope`.

    A caller that is limited to some kbs may use only those that are marked with `within_kbs`.
    """
    for name, method in list(vars(part).items()):
        if not name.startswith("_") and iscoroutinefunction(method):
            setattr(part, name, _acting(method))
    return part


def within_kbs(method: F) -> F:
    """Mark a method that shows and changes nothing outside of the kbs that its caller is limited to."""
    method.__dict__["within_kbs"] = True
    return method


def _acting(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def call(self: Any, *arguments: Any, **options: Any) -> Any:
        scope: TenantScope = self._scope
        if scope.is_limited and not hasattr(method, "within_kbs"):
            raise AccessDenied("this concerns the whole tenant, and the key is limited to some knowledge bases")
        with scope.acting():
            return await method(self, *arguments, **options)

    return call
