"""Tenants, what they use, their keys, and the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ragstone.core.audit import AuditChain, Outcome
from ragstone.core.keys import IssuedKey, KeyScope
from ragstone.core.tenants import TenantState
from ragstone.core.types import Json
from ragstone.schemas.schema import Moment, Schema


class QuotasSchema(Schema):
    """The limits of a tenant; one that is null has no limit."""

    documents: int | None
    chunks: int | None
    bytes: int | None
    queries_per_minute: int | None
    cost_per_month: float | None


class TenantSchema(Schema):
    """A tenant with its limits and settings."""

    id: str
    name: str
    state: TenantState
    created_at: Moment
    quotas: QuotasSchema
    retention_days: int | None
    settings: dict[str, Json]


class TenantListSchema(Schema):
    """All tenants."""

    tenants: list[TenantSchema]


class QueuedStockSchema(Schema):
    """The documents that wait in the queue, and their bytes."""

    documents: int
    bytes: int


class UsageSchema(Schema):
    """The stock and the spending of a tenant, under the names of the quotas."""

    documents: int
    chunks: int
    bytes: int
    originals: int
    queries_per_minute: int
    cost_per_month: float
    cost_by_kind: dict[str, float]
    queued: QueuedStockSchema
    reserved: dict[str, float]
    units_by_kind: dict[str, float]
    cost_by_month: dict[str, dict[str, float]]
    web_queries: dict[str, int]
    projection: dict[str, float]

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a tenant's usage."""
        own = {name: getattr(source, name) for name in cls.model_fields if hasattr(source, name)}
        return super().of(source.stock, queries_per_minute=source.queries, cost_per_month=source.cost, **own, **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a usage, with the stock in one place."""
        return {
            **data,
            "stock": data,
            "queries": data.get("queries_per_minute", 0),
            "cost": data.get("cost_per_month", 0.0),
        }


class TenantDetailSchema(TenantSchema):
    """A tenant with what it uses."""

    usage: UsageSchema


class AuditEntrySchema(Schema):
    """One thing that was done for a tenant, or refused."""

    moment: Moment
    actor: str
    tenant: str
    tenant_id: str
    action: str
    outcome: Outcome
    target: str
    kb: str
    count: int
    document_ids: list[str]
    counts: dict[str, int]
    detail: str


class AuditSchema(Schema):
    """Entries of the audit trail, newest first."""

    audit: list[AuditEntrySchema]


class AuditChainSchema(Schema):
    """The result of proving the audit record."""

    intact: bool
    entries: int
    pruned: int
    """Entries that were removed by age or number."""
    head: str
    """The hash of the last entry."""
    broken_at: int | None
    """The first entry that is not as it was written, or the last good one if others are missing."""
    problem: str

    @classmethod
    def of_chain(cls, chain: AuditChain) -> Self:
        """Build the shape of a verified record."""
        return cls.of(chain, intact=chain.is_intact)


class ApiKeySchema(Schema):
    """A key of a caller over the network, without its secret part."""

    id: str
    name: str
    tenant: str
    scopes: list[KeyScope]
    kbs: list[str]
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    per_minute: int | None


class ApiKeyListSchema(Schema):
    """API keys, oldest first."""

    keys: list[ApiKeySchema]


class IssuedKeySchema(ApiKeySchema):
    """A key that was made, with its whole text: it is shown this once."""

    key: str

    @classmethod
    def of_issued(cls, issued: IssuedKey) -> Self:
        """Build the shape of a new key."""
        return cls.of(issued.key, key=issued.token)


class NewKeySchema(Schema):
    """A key for `security.key`."""

    key: str


class RenewalSchema(Schema):
    """Counts of what was brought under the present key, and of what could not be."""

    files: int
    sources: int
    failed: list[str]


class RotationSchema(Schema):
    """A key rotation, by tenant."""

    tenants: dict[str, RenewalSchema]
