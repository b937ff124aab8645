"""Truncate and resync: remove all vectors of a kb, make them again from its text, and read its sources again.

One transaction puts an empty Space in the place of the others. The text stays in the ledger and is found by word
throughout. After a crash, workers fill the Space, and the same command goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ragstone.core.errors import unknown_kb
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import SpaceBook
from ragstone.engine.embeddings.reembed import identify_default
from ragstone.ingest.backfill import FillResult, OnFill, SpaceFiller
from ragstone.models.embedders.pool import EmbedderPool

Reread = Callable[[str, str], Awaitable[int]]
"""Queues a look from the beginning at all sources of a tenant's kb; how many."""


@dataclass(frozen=True, slots=True)
class ResyncReport:
    """The outcome of a truncation and the resync after it."""

    kb: str
    model: str
    generation: int
    removed: int
    """Vectors that were removed."""
    written: int
    """Vectors that were made again."""
    refused: int
    """Chunks that the model gave no vector for; they are found by word."""
    chunks: int
    """Live chunks of the kb."""
    sources: int
    """Sources that are read again from their beginning by the next worker."""
    resumed: bool
    """True when an earlier truncation was not finished, and this went on with it."""
    seconds: float


async def resync(
    ledger: Ledger,
    book: SpaceBook,
    embedders: EmbedderPool,
    reread: Reread,
    tenant: str,
    kb_name: str,
    on_progress: OnFill | None = None,
) -> ResyncReport:
    """Truncate the vectors of a kb unless that was done before, and make all of them again."""
    started, spaces = time.monotonic(), book.of(tenant)
    kb = await ledger.of(tenant).kb(kb_name)
    if kb is None:
        raise unknown_kb(kb_name, tenant)
    # Asked before anything is removed: without a model there would be nothing to fill the Space with.
    model, dimension = await identify_default(embedders, kb)
    is_live = kb.space is not None and (kb.space.model, kb.space.dimension) == (model, dimension)
    resumed = is_live and await spaces.is_truncated(kb)
    removed = sources = 0
    if not resumed:
        sources = await reread(tenant, kb_name)
        removed = sum(record.vectors for record in await spaces.all(kb))
        async with ledger.transaction(tenant) as tx:
            kb = await tx.truncate(kb, model, dimension)
    assert kb.space is not None
    for record in await spaces.all(kb):
        if record.space.state == "retired":
            await spaces.drop(record.space)
    filled = FillResult()
    await SpaceFiller(book, embedders.for_space).fill(tenant, kb, kb.space, filled, on_progress=on_progress)
    await spaces.note_embedded(kb, filled.refused)
    return ResyncReport(
        kb=kb_name,
        model=model,
        generation=kb.space.generation,
        removed=removed,
        written=filled.written,
        refused=len(filled.refused),
        chunks=(await spaces.coverage(kb, kb.space))[1],
        sources=sources,
        resumed=resumed,
        seconds=round(time.monotonic() - started, 3),
    )
