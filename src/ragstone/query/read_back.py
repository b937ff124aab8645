"""Candidates are ids: here they are read back from the ledger, and what is foreign, stale or gone drops out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ragstone.core.ledger import Ledger
from ragstone.query.fusion import Fused
from ragstone.query.search import Found, Search

logger = logging.getLogger(__name__)


async def read_back(ledger: Ledger, search: Search, fused: Sequence[Fused], wanted: int) -> list[Found]:
    """The first `wanted` candidates that are live; fewer when the time is up, which `degraded` says."""
    found: list[Found] = []
    start = 0
    try:
        async with asyncio.timeout(search.record.read_seconds):
            while len(found) < wanted and start < len(fused):
                part = fused[start : start + wanted - len(found)]
                live = await ledger.chunks(search.tenant, search.kb, [item.chunk_id for item in part])
                found += [Found(item, live[item.chunk_id]) for item in part if item.chunk_id in live]
                start += len(part)
    except TimeoutError:
        logger.warning("reading passages of kb '%s' did not end in time", search.kb.name)
        search.record.degrade("read_back: out of time")
    return found
