"""A tenant stands in another ledger as it stands here: suspended or not, with its limits and what it has spent."""

from __future__ import annotations

from dataclasses import fields

from ragstone.core.clock import now
from ragstone.moves.compare import plain
from ragstone.moves.reports import NONE, Differences
from ragstone.stores.opening import Stores
from ragstone.stores.quota_rows import SLACK
from ragstone.stores.standing import Standing, read_standing, write_standing


async def carry_standing(here: Stores, there: Stores, tenant: str) -> Differences:
    """Carry it, read it again there, and say what is not the same."""
    moment = now()
    ours = await here.ledger.control_read(lambda db: read_standing(db, tenant, moment), None)
    if ours is None:
        return NONE
    await there.ledger.control_write(lambda db: write_standing(db, tenant, ours, moment))
    theirs = await there.ledger.control_read(lambda db: read_standing(db, tenant, moment), None)
    return compare_standing(tenant, ours, theirs)


def compare_standing(tenant: str, ours: Standing, theirs: Standing | None) -> Differences:
    """What differs. More may have been spent there than here, but not less."""
    if theirs is None:
        return Differences.of(f"tenant '{tenant}' is missing")
    found = [
        field.name
        for field in fields(ours)
        if field.name != "costs" and plain(getattr(ours, field.name)) != plain(getattr(theirs, field.name))
    ]
    if any(theirs.costs.get(kind, 0.0) < cost - SLACK for kind, cost in ours.costs.items()):
        found.append("costs")
    return Differences.of(*(f"tenant '{tenant}' differs in its {name}" for name in found))
