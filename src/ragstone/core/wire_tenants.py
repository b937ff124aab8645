"""Tenants as JSON: like `ragstone.core.wire`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ragstone.core.clock import canonical
from ragstone.core.tenants import Tenant, Usage
from ragstone.core.types import Json

JsonObject = dict[str, Json]


def tenant_json(tenant: Tenant) -> JsonObject:
    """A tenant; a quota that is null has no limit."""
    return {
        "id": tenant.id,
        "name": tenant.name,
        "state": tenant.state,
        "created_at": canonical(tenant.created_at),
        "quotas": asdict(tenant.quotas),
        "retention_days": tenant.retention_days,
        "settings": dict(tenant.settings),
    }


def tenants_json(tenants: Sequence[Tenant]) -> JsonObject:
    """All tenants."""
    return {"tenants": [tenant_json(tenant) for tenant in tenants]}


def usage_json(usage: Usage) -> JsonObject:
    """What a tenant has and has used, under the names of the quotas."""
    return {
        **asdict(usage.stock),
        "queries_per_minute": usage.queries,
        "cost_per_month": usage.cost,
        "cost_by_kind": dict(usage.cost_by_kind),
        "queued": {"documents": usage.queued.documents, "bytes": usage.queued.bytes},
        "reserved": dict(usage.reserved),
    }
