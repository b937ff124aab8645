"""Tenants: who owns what, how much of it they may have, and what has been used of that."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, get_args

from ragstone.core.errors import BudgetSpent, InputError
from ragstone.core.types import Metadata

TenantState = Literal["active", "suspended", "deleting"]
QuotaName = Literal["documents", "chunks", "bytes", "queries_per_minute", "cost_per_month"]
STOCK: tuple[QuotaName, ...] = ("documents", "chunks", "bytes")
"""Stock of a tenant: counted where it lies, so that it cannot be counted wrongly."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits of a tenant; None means no limit."""

    documents: int | None = None
    chunks: int | None = None
    bytes: int | None = None
    queries_per_minute: int | None = None
    cost_per_month: float | None = None
    """In US dollars, by calendar month."""

    def of(self, name: QuotaName) -> float | None:
        """Return the limit of that name."""
        limit: float | None = getattr(self, name)
        return limit

    @property
    def limits_stock(self) -> bool:
        """Return whether new content has to be counted."""
        return any(self.of(name) is not None for name in STOCK)


UNLIMITED = Quotas()
QUOTA_NAMES: tuple[QuotaName, ...] = get_args(QuotaName)
LONGEST_DAYS = 36_500


def checked_quotas(quotas: Quotas) -> Quotas:
    """Quotas that can be meant, or `InputError`."""
    for name in QUOTA_NAMES:
        limit = quotas.of(name)
        if limit is not None and not (0 <= limit < 2**53 and (name == "cost_per_month" or float(limit).is_integer())):
            raise InputError(f"quotas.{name} cannot be {limit}", hint="give a number from 0 on, or 'none' for no limit")
    return quotas


def checked_retention(days: int | None) -> int | None:
    """Days that documents can be kept, or `InputError`."""
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise InputError(
            f"retention_days cannot be {days}", hint=f"give 1 to {LONGEST_DAYS:,} days, or 'none' to keep documents"
        )
    return days


@dataclass(frozen=True, slots=True)
class Tenant:
    """Owns everything. Known to people by name and to the stores by an opaque id that never changes."""

    id: str
    name: str
    state: TenantState
    created_at: datetime
    quotas: Quotas = UNLIMITED
    retention_days: int | None = None
    """Documents that were not updated for longer are deleted; None keeps them."""
    settings: Metadata = field(default_factory=dict)
    """Settings of this tenant alone, by dotted key."""
    seed: str = ""
    """The seed of its documents' ids: its first name, unless that was another tenant's before."""


@dataclass(frozen=True, slots=True)
class Stock:
    """Amounts that a tenant holds now."""

    documents: int = 0
    chunks: int = 0
    bytes: int = 0
    """Of text and original files as they are stored, or of files that wait in the queue."""
    originals: int = 0
    """The bytes of original files among them."""

    def of(self, name: QuotaName) -> float:
        """Return the amount of one kind."""
        amount: float = getattr(self, name, 0)
        return amount


EMPTY = Stock()


@dataclass(frozen=True, slots=True)
class Usage:
    """Everything a tenant holds and has used."""

    stock: Stock
    """Documents, chunks and bytes that can be found."""
    queued: Stock
    """Documents, chunks and bytes that were taken in and cannot be found yet."""
    queries: int
    """In the minute that runs; counted only while there is a limit."""
    cost: float
    """In the month that runs, in US dollars."""
    cost_by_kind: Mapping[str, float] = field(default_factory=dict)
    reserved: Mapping[str, float] = field(default_factory=dict)
    """Amounts that are promised to work under way."""
    units_by_kind: Mapping[str, float] = field(default_factory=dict)
    """Tokens and queries in the month that runs, as far as paid services or the web were asked."""
    cost_by_month: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Costs by kind of the last twelve months, oldest first."""
    web_queries: Mapping[str, int] = field(default_factory=dict)
    """Queries that went to the web search engine, by day, of the last 31 days."""
    projection: Mapping[str, float] = field(default_factory=dict)
    """The cost by kind that the design expects of a month with as many documents and conversations."""


NEARLY = 0.9
"""The share of a budget from which it is spared."""


@dataclass(frozen=True, slots=True)
class MonthBudget:
    """The budget of a tenant in the month that runs, in US dollars."""

    limit: float
    spent: float
    moment: datetime

    @property
    def is_nearly_spent(self) -> bool:
        """Return whether it has to be spared: `thorough` searches become `balanced`."""
        return self.spent >= NEARLY * self.limit

    @property
    def is_spent(self) -> bool:
        """Return whether nothing may be paid for any more."""
        return self.spent >= self.limit

    @property
    def resets_at(self) -> datetime:
        """Return the beginning of the next month."""
        first = self.moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)

    @property
    def note(self) -> str:
        """Return what a reply says when it is less thorough for it."""
        return f"budget: {self._said}: balanced instead of thorough until {self.resets_at:%Y-%m-%d}"

    def refusal(self) -> BudgetSpent | None:
        """Return the error for what cannot be done without paying; None while there is something left."""
        if not self.is_spent:
            return None
        return BudgetSpent(
            f"{self._said}: nothing is paid for until {self.resets_at:%Y-%m-%d}",
            hint="wait for the next month, or raise quotas.cost_per_month",
            retry_after=(self.resets_at - self.moment).total_seconds(),
        )

    @property
    def _said(self) -> str:
        return f"{self.spent:,.2f} of {self.limit:,.2f} USD of this month are spent"


@dataclass(frozen=True, slots=True)
class Projection:
    """The cost of a tenant's month as the design of Tulia expects it, in US dollars."""

    embedding: float
    vectors: float
    web: float

    @property
    def total(self) -> float:
        """Return the sum."""
        return self.embedding + self.vectors + self.web

    def by_kind(self) -> Mapping[str, float]:
        """Return the amounts under the names that actual costs have."""
        return {"embedding": self.embedding, "vectors": self.vectors, "web": self.web}


POD_MONTH = 70.0
POD_VECTORS = 100_000
EMBEDDED_DOCUMENT = 0.002
"""The design's embedding cost for each document in a month, with all its updates and queries."""
SHARED_POD, LARGE_TENANTS_POD = 30, 10
"""Tenants on one pod."""
MOST_DOCUMENTS_SHARED = 100
PAID_QUERIES_PER_CONVERSATION = 0.3
FREE_CONVERSATIONS = 100
"""Conversations whose web searches stay within the free tier."""


def project_month(documents: int, conversations: int, web_per_thousand: float = 5.0) -> Projection:
    """Return the cost that the design expects of a tenant of this size: to compare with what it really costs."""
    tenants = SHARED_POD if documents <= MOST_DOCUMENTS_SHARED else LARGE_TENANTS_POD
    paid = PAID_QUERIES_PER_CONVERSATION * conversations if conversations > FREE_CONVERSATIONS else 0.0
    return Projection(
        embedding=EMBEDDED_DOCUMENT * documents,
        vectors=round(POD_MONTH / tenants, 2),
        web=paid * web_per_thousand / 1000,
    )


@dataclass(frozen=True, slots=True)
class Reservation:
    """A promise of room. Without amounts nothing is limited, and there is nothing to give back."""

    id: str
    tenant_id: str
    amounts: Mapping[QuotaName, float] = field(default_factory=dict)


class Admission(Protocol):
    """Admission of new content for a tenant, as the ingest pipeline asks for it."""

    async def write(self, tenant: str) -> str:
        """Return the tenant's id, empty while there is none, or raise `TenantSuspended` when nothing may be written."""
        ...

    async def seed(self, tenant: str) -> str:
        """Return the seed of ids of the tenant's new documents."""
        ...

    async def is_limited(self, tenant: str) -> bool:
        """Return whether the tenant's documents have to be counted."""
        ...

    async def expect(self, tenant: str, *, documents: int = 0) -> None:
        """Raises `QuotaExceeded` when there is no room already, before any work is done."""
        ...

    def taking_in(
        self,
        tenant: str,
        *,
        documents: int = 0,
        chunks: int = 0,
        size: int = 0,
        queued: bool = False,
        waiting: Stock = EMPTY,
    ) -> AbstractAsyncContextManager[None]:
        """Hold room while something is being stored, or put in the queue if `queued`; else `QuotaExceeded`.

        `waiting` is the part of it that counts as waiting in the queue, too: for what is queued, it is not held twice.
        """
        ...

    def paying(self, tenant: str) -> AbstractAsyncContextManager[None]:
        """Charge the tenant for what models cost meanwhile."""
        ...
