"""API keys on their way to another ledger: their hashes go along, so that clients keep the keys they have."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.stores.control.keys import StoredKey, read_keys, write_keys
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.transfer.reports import Differences


async def carry_keys(here: SqlLedger, there: SqlLedger, tenant: str) -> Differences:
    """Carry the keys of a tenant, or the operator's for an empty name; read them there and return the differences."""
    ours = await _keys(here, tenant)
    await there.control_write(lambda db: write_keys(db, tenant, ours))
    theirs = await _keys(there, tenant)
    if not tenant:
        # Another installation may have moved there as well, and its operator goes on, too.
        known = {key.id for key in ours}
        theirs = [key for key in theirs if key.id in known]
    return Differences.of(*compare_keys(ours, theirs))


def compare_keys(ours: Sequence[StoredKey], theirs: Sequence[StoredKey]) -> list[str]:
    """Return the differences in words. A key may be revoked there that is not revoked here."""
    others = {key.id: key for key in theirs}
    said = []
    for key in ours:
        other = others.pop(key.id, None)
        if other is None:
            said.append(f"key {key.id} ({key.name}) is missing")
        elif key != (other._replace(revoked_at=key.revoked_at) if other.revoked_at else other):
            said.append(f"key {key.id} ({key.name}) differs")
    return said + [f"key {key.id} ({key.name}) is there and not here" for key in others.values()]


async def _keys(ledger: SqlLedger, tenant: str) -> list[StoredKey]:
    nothing: list[StoredKey] = []
    return await ledger.control_read(lambda db: read_keys(db, tenant), nothing)
