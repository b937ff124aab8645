"""Candidates are ids: here they are read back from the ledger, and what is foreign, stale or gone drops out."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.ledger import Ledger
from ragstone.query.fusion import Fused
from ragstone.query.patience import limited
from ragstone.query.search import Found, Search


async def read_back(ledger: Ledger, search: Search, fused: Sequence[Fused], wanted: int) -> list[Found]:
    """The first `wanted` candidates that are live; fewer when the store is too slow, which `degraded` says."""
    found: list[Found] = []
    start = 0
    async with limited(search.record, "read_back", search.record.read_seconds):
        while len(found) < wanted and start < len(fused):
            part = fused[start : start + wanted - len(found)]
            live = await ledger.chunks(search.tenant, search.kb, [item.chunk_id for item in part])
            found += [Found(item, live[item.chunk_id]) for item in part if item.chunk_id in live]
            start += len(part)
    return found
