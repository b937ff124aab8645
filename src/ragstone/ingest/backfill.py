"""Filling a Space: live chunks that have no vector in it get one, whenever and however often this is done."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ragstone.core.clock import now
from ragstone.core.errors import ModelError, ModelMismatch, QuotaExceeded, TenantSuspended
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Embedder
from ragstone.core.spaces import EmbedderFor, Lacking, Rows, SpaceBook
from ragstone.core.tenants import Admission
from ragstone.core.types import KnowledgeBase, Space, Vector
from ragstone.ingest.admission import Unlimited

logger = logging.getLogger(__name__)
WINDOW = 1024
"""Chunks that are read together and embedded in order of length, so that a batch holds texts of like length."""
BATCH = 128
"""Chunks that are embedded and written together: as much as a crash costs."""
AT_A_TIME = 512
"""Chunks that a worker embeds before it looks after others."""


@dataclass(frozen=True, slots=True)
class FillProgress:
    """How far a Space is."""

    done: int
    total: int
    seconds_left: float | None


OnFill = Callable[[FillProgress], None]


@dataclass(slots=True)
class FillResult:
    """What filling did."""

    written: int = 0
    refused: set[int] = field(default_factory=set)
    """Numbers of chunks that the model gave no vector for."""


class SpaceFiller:
    """Gives chunks the vectors that they lack. What it has done is in the ledger, so it can be stopped at any time."""

    def __init__(self, book: SpaceBook, embedder_for: EmbedderFor) -> None:
        self._book = book
        self._embedder_for = embedder_for

    async def fill(
        self,
        tenant: str,
        kb: KnowledgeBase,
        space: Space,
        filled: FillResult,
        *,
        on_progress: OnFill | None = None,
        most: int | None = None,
    ) -> bool:
        """Embed what a Space lacks until nothing is left to try; whether it came so far before `most` chunks."""
        embedder = await self._embedder_for(space.model)
        watch = await self._watch(tenant, kb, space, on_progress)
        after, tried = 0, 0
        while window := await self._book.lacking(tenant, kb, space, after, WINDOW):
            after = window[-1].number
            for batch in _batches([one for one in window if one.number not in filled.refused]):
                if most is not None and tried >= most:
                    return False
                filled.written += await self._book.add(
                    tenant, space, await self._rows(tenant, embedder, space, batch, filled)
                )
                tried += len(batch)
                watch.report(tried)
        return True

    async def complete(self, tenant: str, space: Space, few: Sequence[Lacking], filled: FillResult) -> Rows:
        """Vectors for the last few chunks, for somebody else to write."""
        embedder = await self._embedder_for(space.model)
        rows = await self._rows(tenant, embedder, space, few, filled)
        filled.written += len(rows)
        return rows

    async def catch_up(self, tenant: str, kb: KnowledgeBase, most: int | None = None) -> FillResult:
        """Fill the live Space for documents that are found by word only so far."""
        filled = FillResult()
        if kb.space and await self._book.word_only(tenant, kb):
            await self.fill(tenant, kb, kb.space, filled, most=most)
            await self._book.note_embedded(tenant, kb, filled.refused)
        return filled

    async def _rows(
        self, tenant: str, embedder: Embedder, space: Space, batch: Sequence[Lacking], filled: FillResult
    ) -> Rows:
        """Vectors of a batch; equal text is embedded once, here and in all of the Space."""
        vectors: dict[bytes, Vector] = dict(
            await self._book.known(tenant, space, [one.text_hash for one in batch])
        )
        missing = {one.text_hash: one.text for one in batch if one.text_hash not in vectors}
        if missing:
            made = await embedder.embed(list(missing.values()), "document")
            if made.model != space.model or made.vectors.shape[1] != space.dimension:
                raise ModelMismatch(
                    f"{made.model} answered with {made.vectors.shape[1]} dimensions where the Space is of "
                    f"{space.model} ({space.dimension})",
                    hint="make that model available and run the same command again: it goes on where it was",
                )
            vectors.update(zip(missing, made.vectors, strict=True))
        filled.refused.update(one.number for one in batch if not vectors[one.text_hash].any())
        return [(one.number, vectors[one.text_hash]) for one in batch if one.number not in filled.refused]

    async def _watch(
        self, tenant: str, kb: KnowledgeBase, space: Space, on_progress: OnFill | None
    ) -> _Watch:
        if on_progress is None:
            return _Watch(0, 0, None)
        watch = _Watch(*await self._book.coverage(tenant, kb, space), on_progress)
        watch.report(0)
        return watch


class _Watch:
    """Tells how far filling is, and how long it will take at the pace so far."""

    def __init__(self, held: int, total: int, on_progress: OnFill | None) -> None:
        self._held = held
        self._total = total
        self._on_progress = on_progress
        self._started = time.monotonic()

    def report(self, tried: int) -> None:
        if self._on_progress is None:
            return
        done = self._held + tried
        total = max(self._total, done)  # documents may have come in meanwhile
        spent = time.monotonic() - self._started
        self._on_progress(FillProgress(done, total, spent * (total - done) / tried if tried else None))


class SpaceMaintenance:
    """What workers do for Spaces: fill what was stored without vectors, remove what was kept long enough."""

    def __init__(
        self, ledger: Ledger, book: SpaceBook, filler: SpaceFiller, gate: Admission | None = None
    ) -> None:
        self._ledger = ledger
        self._book = book
        self._filler = filler
        self._gate: Admission = gate or Unlimited()

    async def fill(self, tenant: str) -> None:
        """Some of what is found by word only; the rest the next time, so that other tenants have their turn."""
        for kb in await self._ledger.kbs(tenant):
            if not await self._book.word_only(tenant, kb):
                continue
            try:
                await self._gate.write(tenant)
                async with self._gate.paying(tenant):
                    await self._filler.catch_up(tenant, kb, most=AT_A_TIME)
            except (ModelError, QuotaExceeded, TenantSuspended) as error:
                # One kb's model must not keep the others waiting, nor what the tenant may spend its other chores.
                logger.warning("documents of '%s' are found by word only: %s", kb.name, error)

    async def clean(self, tenant: str) -> None:
        """Remove retired Spaces whose grace period is over."""
        for space in await self._book.expired(tenant, now()):
            await self._book.drop(tenant, space)


def _batches(window: Sequence[Lacking]) -> Iterator[Sequence[Lacking]]:
    ordered = sorted(window, key=lambda one: (len(one.text), one.number))
    for start in range(0, len(ordered), BATCH):
        yield ordered[start : start + BATCH]
