"""Tenants that an earlier run has copied, and that have another name here by now or are no longer here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ragstone.core.tenants import Tenant
from ragstone.stores.control.audit import recorded_tenants
from ragstone.stores.factory import Stores
from ragstone.stores.ledger.originals import list_origins, origin_mark
from ragstone.transfer.reports import SHOWN, Differences, TenantMove


class Copy(NamedTuple):
    """A tenant there that came from some ledger and has a name that is not moved from here."""

    name: str
    origins: Mapping[str, bool]
    """By the marks of the tenants that it came from: whether nothing else has written to it since."""


async def follow_names(here: Stores, there: Stores, names: Collection[str]) -> None:
    """Rename copies there whose tenants were renamed here, if nobody else has written to them and the name is free."""
    called = {origin_mark(tenant.id): tenant.name for tenant in await here.tenants.all() if tenant.name in names}
    for copy in await _find_copies(there, names):
        for mark, is_untouched in copy.origins.items():
            if is_untouched and mark in called and await there.tenants.get(called[mark]) is None:
                await there.tenants.rename(copy.name, called[mark])


async def find_left(here: Stores, there: Stores, names: Collection[str]) -> tuple[list[TenantMove], tuple[str, ...]]:
    """Return a difference for each copy that came from here and would live on there, and a remark about all others."""
    known = {origin_mark(tenant.id): tenant for tenant in await here.tenants.all()}
    nothing: set[str] = set()
    recorded = {origin_mark(tenant_id) for tenant_id in await here.ledger.control_read(recorded_tenants, nothing)}
    left, others = [], []
    for copy in await _find_copies(there, names):
        mark = next((mark for mark in copy.origins if mark in known or mark in recorded), None)
        if mark is None:
            others.append(copy.name)
        else:
            said = _describe(copy.name, known.get(mark), is_untouched=copy.origins[mark])
            left.append(TenantMove(copy.name, 0, 0, 0, 0, 0, 0, 1.0, Differences.of(said)))
    named = ", ".join(others[:SHOWN])
    return left, (f"tenants there that this ledger knows nothing of were left alone: {named}",) if others else ()


def _describe(name: str, tenant: Tenant | None, *, is_untouched: bool) -> str:
    reason = f"is called '{tenant.name}' here" if tenant and tenant.name != name else "was deleted here"
    since = "" if is_untouched else " and has been written to there"
    return (
        f"tenant '{name}' of an earlier move {reason}{since}: "
        "delete the tenant there, with the settings of the new ledger"
    )


async def _find_copies(there: Stores, names: Collection[str]) -> list[Copy]:
    others = [tenant for tenant in await there.tenants.all() if tenant.name not in names and tenant.state != "deleting"]
    copies = [Copy(tenant.name, await there.ledger.read(tenant.name, list_origins)) for tenant in others]
    return [copy for copy in copies if copy.origins]
