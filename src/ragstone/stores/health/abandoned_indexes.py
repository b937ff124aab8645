"""Vector databases that the settings name no longer: what they were given is still in them, and nobody asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.core.health import Finding
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import Tenant
from ragstone.stores.sql.database import Connection

if TYPE_CHECKING:
    from ragstone.stores.factory import Stores

FLEETING = "memory"
"""Ends with its process, and takes along what it was given."""


def list_abandoned_indexes(
    connection: Connection, tenant_id: str, used: str, space_ids: Sequence[int] = ()
) -> list[str]:
    """Those that hold something of some Spaces, or of any when none is named, and are not the one in use."""
    rows = connection.execute(
        "SELECT DISTINCT index_name, space_id FROM watermarks WHERE tenant_id = ? AND index_name NOT IN (?, ?)",
        (tenant_id, used, FLEETING),
    )
    return sorted({name for name, space_id in rows if not space_ids or space_id in space_ids})


def forget_index(connection: Connection, tenant_id: str, name: str) -> None:
    """Believe that a store holds nothing of a tenant any more."""
    connection.execute("DELETE FROM watermarks WHERE tenant_id = ? AND index_name = ?", (tenant_id, name))


async def check_abandoned_indexes(stores: Stores, tenants: Sequence[Tenant], forget: str) -> list[Finding]:
    """What is left where; the one to forget is believed to be empty from now on."""
    used = stores.derived.provider.name if stores.derived else ""
    found = []
    for tenant in tenants:
        for name in await stores.ledger.read(tenant.name, list_abandoned_indexes, used):
            detail = f"tenant '{tenant.name}' has vectors in it, and it is not in use"
            if name == forget:
                await stores.ledger.write(tenant.name, forget_index, name)
                done = "forgotten: what it holds must be removed by hand"
                found.append(Finding(name, "left", "ok", detail, done, repaired=True))
            else:
                found.append(Finding(name, "left", "warn", detail, remedy=Remedy(Action.FINISH_LEFT_STORE, store=name)))
    return found
