"""Tenants in the control tables: functions over a connection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from ragstone.core.audit import NO_CALLER, AuditEntry, Caller
from ragstone.core.clock import canonical, parse_moment
from ragstone.core.errors import InputError, TenantGone
from ragstone.core.ids import check_name, opaque_id
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import Quotas, Tenant, TenantState, checked_quotas
from ragstone.core.types import Json, Metadata
from ragstone.settings.tenants import packed_settings
from ragstone.stores.control import quotas as quota_rows
from ragstone.stores.control.alerts import forget_alerts
from ragstone.stores.control.audit import append_entries
from ragstone.stores.sql.database import Connection

TENANT = "SELECT id, name, state, created_at, quotas, retention_days, settings, coalesce(seed, name) FROM tenants"
REST_SECONDS = 600
"""Seconds that a released name is not given to another tenant: work that still runs under it must not meet one."""


def register(connection: Connection, name: str, moment: datetime, who: Caller = NO_CALLER) -> str:
    """Return the id of the tenant of that name, which is made if there is none and the name does not rest."""
    check_name(name, "tenant")
    known = connection.execute("SELECT id FROM tenants WHERE name = ?", (name,)).fetchone()
    if known:
        return str(known[0])
    if rest := _rest_of(connection, name, moment):
        raise TenantGone(
            f"tenant '{name}' was deleted (or renamed) just now",
            hint=f"nothing is made under its name until {rest[1]}: use another, or the tenant's new one",
        )
    made = opaque_id()
    # A tenant that had this name before and has another now keeps its documents' ids: new ones must differ.
    taken = connection.execute("SELECT 1 FROM tenants WHERE seed = ?", (name,)).fetchone()
    connection.execute(
        "INSERT INTO tenants (name, id, created_at, seed) VALUES (?, ?, ?, ?)",
        (name, made, canonical(moment), made if taken else None),
    )
    append_entries(connection, [_creation(moment, made, name, who)])
    return made


def read_tenant(connection: Connection, name: str) -> Tenant | None:
    row = connection.execute(f"{TENANT} WHERE name = ?", (name,)).fetchone()
    return _tenant(row) if row else None


def read_tenants(connection: Connection) -> list[Tenant]:
    """Return the tenants in order of name."""
    return [_tenant(row) for row in connection.execute(f"{TENANT} ORDER BY name")]


def has_ledger(connection: Connection, tenant_id: str) -> bool:
    """Return whether the tenant's ledger was made."""
    row = connection.execute("SELECT has_ledger FROM tenants WHERE id = ?", (tenant_id,)).fetchone()
    return bool(row and row[0])


def mark_ledger(connection: Connection, tenant_id: str) -> None:
    """Remember that the tenant's ledger was made."""
    connection.execute("UPDATE tenants SET has_ledger = 1 WHERE id = ?", (tenant_id,))


def existing(connection: Connection, name: str, *, deleting: bool = False) -> Tenant:
    """Return the tenant of that name; one that is being deleted only if asked for."""
    found = read_tenant(connection, name)
    if found is None:
        raise unknown(name)
    if found.state == "deleting" and not deleting:
        raise leaving(name)
    return found


def unknown(name: str) -> TenantGone:
    """Return the error for a tenant that does not exist."""
    return TenantGone(f"there is no tenant '{name!s:.80}'", remedy=Remedy(Action.LIST_TENANTS))


def leaving(name: str) -> TenantGone:
    """Return the error for a tenant that is being deleted."""
    return TenantGone(f"tenant '{name}' is being deleted", remedy=Remedy(Action.FINISH_TENANT_DELETION, tenant=name))


def _creation(moment: datetime, tenant_id: str, name: str, who: Caller) -> AuditEntry:
    return AuditEntry(moment, tenant_id, name, who.actor, "tenant.create", target=name, request_id=who.request_id)


def create(connection: Connection, name: str, quotas: Quotas, moment: datetime, who: Caller = NO_CALLER) -> Tenant:
    check_name(name, "tenant")
    _refuse_taken(connection, name, moment)
    register(connection, name, moment, who)
    return change(connection, name, "quotas", packed_quotas(quotas))


def rename(connection: Connection, old: str, new: str, moment: datetime) -> Tenant:
    """Another name for the same tenant; the ids of its documents stay what they are, and the old name rests."""
    check_name(new, "tenant")
    tenant = existing(connection, old)
    if new != old:
        _refuse_taken(connection, new, moment, tenant.id)
        connection.execute("DELETE FROM resting_names WHERE name = ?", (new,))
        _let_rest(connection, tenant, moment)
        connection.execute("UPDATE tenants SET name = ?, seed = coalesce(seed, name) WHERE id = ?", (new, tenant.id))
    return existing(connection, new)


def change(connection: Connection, name: str, column: str, value: Json) -> Tenant:
    """Set one column, whose name is a constant of the caller's."""
    tenant = existing(connection, name)
    connection.execute(f"UPDATE tenants SET {column} = ?, bell = bell + 1 WHERE id = ?", (value, tenant.id))
    return existing(connection, name)


def begin_delete(connection: Connection, name: str, moment: datetime) -> Tenant:
    """From now on nothing is done for this tenant but its deletion, and its name rests."""
    tenant = existing(connection, name, deleting=True)
    _let_rest(connection, tenant, moment)
    connection.execute("UPDATE tenants SET state = 'deleting' WHERE id = ?", (tenant.id,))
    return tenant


def finish_delete(connection: Connection, tenant_id: str) -> None:
    """Let go of the name; what was used and reserved goes with it. Names that rest are nobody's to take back."""
    connection.execute("UPDATE resting_names SET tenant_id = '' WHERE tenant_id = ?", (tenant_id,))
    connection.execute("DELETE FROM tenants WHERE id = ? AND state = 'deleting'", (tenant_id,))
    forget_alerts(connection, tenant_id)


def packed_quotas(quotas: Quotas) -> str:
    """Return the limits that there are, checked."""
    limits = asdict(checked_quotas(quotas))
    return json.dumps({name: value for name, value in limits.items() if value is not None})


def _refuse_taken(connection: Connection, name: str, moment: datetime, taker: str | None = None) -> None:
    """`taker` is the id of the tenant that wants the name: it may have its own one back."""
    found = read_tenant(connection, name)
    if found and found.state == "deleting":
        raise leaving(name)
    if found:
        raise InputError(f"there is a tenant '{name}' already", hint="choose another name")
    rest = _rest_of(connection, name, moment)
    if rest and rest[0] != taker:
        raise InputError(
            f"the name '{name}' was let go just now and is given to nobody else until {rest[1]}",
            hint="choose another name, or wait; a tenant that was renamed may take its own name back",
        )


def _let_rest(connection: Connection, tenant: Tenant, moment: datetime) -> None:
    connection.execute(
        "INSERT INTO resting_names (name, tenant_id, until) VALUES (?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET tenant_id = excluded.tenant_id, until = excluded.until",
        (tenant.name, tenant.id, canonical(moment + timedelta(seconds=REST_SECONDS))),
    )


def _rest_of(connection: Connection, name: str, moment: datetime) -> tuple[str, str] | None:
    """Return the tenant that a resting name belonged to and until when it rests; forget names that have rested."""
    connection.execute("DELETE FROM resting_names WHERE until <= ?", (canonical(moment),))
    found = connection.execute("SELECT tenant_id, until FROM resting_names WHERE name = ?", (name,)).fetchone()
    return (found[0], found[1]) if found else None


def _tenant(row: Sequence[Any]) -> Tenant:
    created = parse_moment(row[3])
    assert created is not None
    return Tenant(
        id=row[0],
        name=row[1],
        state=row[2],
        created_at=created,
        quotas=Quotas(**json.loads(row[4])),
        retention_days=row[5],
        settings=json.loads(row[6]),
        seed=row[7],
    )


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
    tenant = existing(connection, name)
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
    register(connection, name, moment)
    tenant_id = existing(connection, name).id  # one that is being deleted there is not brought back
    connection.execute(
        "UPDATE tenants SET state = ?, quotas = ?, retention_days = ?, settings = ?, seed = ?, bell = bell + 1 "
        "WHERE id = ?",
        (
            *(standing.state, packed_quotas(standing.quotas), standing.retention_days),
            *(packed_settings(standing.settings), standing.seed, tenant_id),
        ),
    )
    spent = quota_rows.costs(connection, tenant_id, moment)
    for kind, cost in standing.costs.items():
        lacking = cost - spent.get(kind, 0.0)
        if lacking > 0:
            quota_rows.add(connection, tenant_id, quota_rows.COST + kind, lacking, moment)
