"""What a run would do: the same comparison as the run's own, and nothing else."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from ragstone.core.ledger import Ledger
from ragstone.core.settings import LimitSettings
from ragstone.core.types import SKIPPED, Failure, IngestReport, Item, KnowledgeBase
from ragstone.ingest.arrivals import Listing
from ragstone.ingest.entries import opened, some
from ragstone.ingest.prepare import Preparer, unusable
from ragstone.ingest.tally import said_of
from ragstone.ingest.task import Task


async def preview(
    ledger: Ledger,
    preparer: Preparer,
    tenant: str,
    kb: KnowledgeBase | None,
    items: Iterable[Item | Failure],
    listings: Sequence[Listing],
    limits: LimitSettings,
) -> IngestReport:
    """Counts of what would be added, updated, unchanged and removed; a moved file counts as added and removed."""
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    failed: list[Failure] = []
    skipped: list[Failure] = []
    seen: set[str] = set()
    entries = opened(items, limits)
    while batch := await asyncio.to_thread(some, entries):
        tasks = []
        for entry in batch:
            failure = entry if isinstance(entry, Failure) else None
            if isinstance(entry, Task):
                failure = unusable(entry.item)
                tasks += [] if failure else [entry]
            if failure:
                (skipped if failure.code == SKIPPED else failed).append(failure)
        for task in tasks:
            item = task.item
            live = await ledger.find(tenant, kb, item.source, [item.external_id]) if kb else {}
            known = live.get(item.external_id)
            seen.add(item.external_id)
            current = preparer.is_current(item, known)
            counts["unchanged" if current else "updated" if known else "added"] += 1
    removed = 0
    for listing in listings if kb else ():
        assert kb is not None
        there = await ledger.belongings(tenant, kb, listing.source, listing.under)
        removed += sum(
            one not in listing.listed and one not in seen and not listing.is_there(one) for one in there
        )
    stats = await ledger.stats(tenant, kb) if kb else None
    return IngestReport(
        added=counts["added"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        failed=tuple(failed),
        documents=stats.documents if stats else 0,
        chunks=stats.chunks if stats else 0,
        seconds=round(time.perf_counter() - started, 3),
        removed=removed,
        skipped=len(skipped),
        warnings=tuple(said_of(skipped)),
    )
