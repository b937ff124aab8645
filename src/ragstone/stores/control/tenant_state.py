"""How a tenant stands: whether it is active, what it may have and what it has spent, for another ledger to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ragstone.core.tenants import Quotas, TenantState
from ragstone.core.types import Metadata
from ragstone.settings.tenants import packed_settings
from ragstone.stores.control import quotas as quota_rows
from ragstone.stores.control import tenant_rows
from ragstone.stores.sql.database import Connection


@dataclass(frozen=True, slots=True)
class Standing:
    """All that is known of a tenant besides its content."""

    state: TenantState
    quotas: Quotas
    retention_days: int | None
    settings: Metadata
    seed: str
    costs: Mapping[str, float]
    """Of the month that runs, by kind."""


def read_standing(connection: Connection, name: str, moment: datetime) -> Standing:
    tenant = tenant_rows.existing(connection, name)
    return Standing(
        state=tenant.state,
        quotas=tenant.quotas,
        retention_days=tenant.retention_days,
        settings=tenant.settings,
        seed=tenant.seed,
        costs=quota_rows.costs(connection, tenant.id, moment),
    )


def write_standing(connection: Connection, name: str, standing: Standing, moment: datetime) -> None:
    """Make a tenant stand so; what it has spent here already is never lowered."""
    tenant_rows.register(connection, name, moment)
    tenant_id = tenant_rows.existing(connection, name).id  # one that is being deleted there is not brought back
    connection.execute(
        "UPDATE tenants SET state = ?, quotas = ?, retention_days = ?, settings = ?, seed = ?, bell = bell + 1 "
        "WHERE id = ?",
        (
            *(standing.state, tenant_rows.packed_quotas(standing.quotas), standing.retention_days),
            *(packed_settings(standing.settings), standing.seed, tenant_id),
        ),
    )
    spent = quota_rows.costs(connection, tenant_id, moment)
    for kind, cost in standing.costs.items():
        lacking = cost - spent.get(kind, 0.0)
        if lacking > 0:
            quota_rows.add(connection, tenant_id, quota_rows.COST + kind, lacking, moment)
