"""Fill a Space: embed the live chunks that have no vector in it. It can be stopped and repeated at any time."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ragstone.core.background import let_questions_go_first
from ragstone.core.batches import batched
from ragstone.core.clock import now
from ragstone.core.errors import ModelError, ModelMismatch, QuotaExceeded, TenantSuspended
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Embedder, EmbedderFor, SpaceBook
from ragstone.core.spaces import Lacking, Rows
from ragstone.core.tenants import Admission
from ragstone.core.types import KnowledgeBase, Space, Vector

logger = logging.getLogger(__name__)
WINDOW = 1024
"""Chunks that are read together and embedded in order of length, so that the texts of a batch are equally long."""
BATCH = 128
"""Chunks that are embedded and written together: as much as a crash costs."""
AT_A_TIME = 512
"""Chunks of one kb that a worker embeds before it goes on to other tenants."""


@dataclass(frozen=True, slots=True)
class FillProgress:
    """Progress of filling a Space."""

    done: int
    total: int
    seconds_left: float | None


OnFill = Callable[[FillProgress], None]


@dataclass(slots=True)
class FillResult:
    """Counts of filling a Space."""

    written: int = 0
    refused: set[int] = field(default_factory=set)
    """Numbers of chunks that the model gave no vector for."""
    refused_texts: set[bytes] = field(default_factory=set)
    """Hashes of texts that the model gave no vector for: it is not asked again for these."""


class SpaceFiller:
    """Gives chunks the vectors that they lack. Its progress is in the ledger, so it can be stopped at any time."""

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
        """Embed the chunks that a Space lacks; return False if more than `most` of them remained to be tried."""
        embedder = await self._embedder_for(space)
        watch = await self._watch(tenant, kb, space, on_progress)
        after, tried, spaces = 0, 0, self._book.of(tenant)
        while window := await spaces.lacking(kb, space, after, WINDOW):
            after = window[-1].number
            filled.refused.update(chunk.number for chunk in window if chunk.text_hash in filled.refused_texts)
            missing = [chunk for chunk in window if chunk.number not in filled.refused]
            for batch in batched(sorted(missing, key=lambda chunk: (len(chunk.text), chunk.number)), BATCH):
                if most is not None and tried >= most:
                    return False
                filled.written += await spaces.add(space, await self._rows(tenant, embedder, space, batch, filled))
                tried += len(batch)
                watch.report(tried)
        return True

    async def complete(self, tenant: str, space: Space, few: Sequence[Lacking], filled: FillResult) -> Rows:
        """Return vectors for the last few chunks; the caller writes them."""
        embedder = await self._embedder_for(space)
        rows = await self._rows(tenant, embedder, space, few, filled)
        filled.written += len(rows)
        return rows

    async def catch_up(
        self, tenant: str, kb: KnowledgeBase, most: int | None = None, refused_texts: set[bytes] | None = None
    ) -> FillResult:
        """Fill the live Space for documents that are found by word only so far.

        What is in `refused_texts` is not tried again; what the model refuses now is added to it.
        """
        filled = FillResult() if refused_texts is None else FillResult(refused_texts=refused_texts)
        spaces = self._book.of(tenant)
        if kb.space and await spaces.word_only(kb):
            await self.fill(tenant, kb, kb.space, filled, most=most)
            await spaces.note_embedded(kb, filled.refused)
        return filled

    async def _rows(
        self, tenant: str, embedder: Embedder, space: Space, batch: Sequence[Lacking], filled: FillResult
    ) -> Rows:
        """Return the vectors of a batch; equal text is embedded once in the whole Space."""
        hashes = [chunk.text_hash for chunk in batch]
        vectors: dict[bytes, Vector] = dict(await self._book.of(tenant).find_vectors(space, hashes))
        missing = {chunk.text_hash: chunk.text for chunk in batch if chunk.text_hash not in vectors}
        if missing:
            with let_questions_go_first():
                made = await embedder.embed(list(missing.values()), "document")
            if made.model != space.model or made.vectors.shape[1] != space.dimension:
                raise ModelMismatch(
                    f"{made.model} answered with {made.vectors.shape[1]} dimensions where the Space is of "
                    f"{space.model} ({space.dimension})",
                    hint="make that model available and run the same command again: it goes on where it was",
                )
            vectors.update(zip(missing, made.vectors, strict=True))
        refused = [chunk for chunk in batch if not vectors[chunk.text_hash].any()]
        filled.refused.update(chunk.number for chunk in refused)
        filled.refused_texts.update(chunk.text_hash for chunk in refused)
        return [(chunk.number, vectors[chunk.text_hash]) for chunk in batch if chunk.number not in filled.refused]

    async def _watch(self, tenant: str, kb: KnowledgeBase, space: Space, on_progress: OnFill | None) -> _Watch:
        if on_progress is None:
            return _Watch(0, 0, None)
        watch = _Watch(*await self._book.of(tenant).coverage(kb, space), on_progress)
        watch.report(0)
        return watch


class _Watch:
    """Reports progress, and the time left at the pace so far."""

    def __init__(self, held: int, total: int, on_progress: OnFill | None) -> None:
        self._held = held
        self._total = total
        self._on_progress = on_progress
        self._started = time.monotonic()

    def report(self, tried: int) -> None:
        if self._on_progress is None:
            return
        done = self._held + tried
        total = max(self._total, done)  # documents may have been added since
        spent = time.monotonic() - self._started
        self._on_progress(FillProgress(done, total, spent * (total - done) / tried if tried else None))


class SpaceMaintenance:
    """Fills Spaces with vectors of documents stored without them, and removes retired Spaces."""

    def __init__(self, ledger: Ledger, book: SpaceBook, filler: SpaceFiller, gate: Admission) -> None:
        self._ledger = ledger
        self._book = book
        self._filler = filler
        self._gate = gate
        self._refused_texts: defaultdict[str, set[bytes]] = defaultdict(set)
        """Texts that each model refused. Tried again at every pass, they would keep those behind them waiting."""

    async def fill(self, tenant: str) -> None:
        """Embed some of the chunks without vectors; the rest the next time, so that other tenants have their turn."""
        for kb in await self._ledger.of(tenant).kbs():
            if kb.space is None or not await self._book.of(tenant).word_only(kb):
                continue
            try:
                await self._gate.write(tenant)
                async with self._gate.paying(tenant):
                    await self._filler.catch_up(tenant, kb, AT_A_TIME, self._refused_texts[kb.space.model])
            except (ModelError, QuotaExceeded, TenantSuspended) as error:
                # Neither a kb's model nor a quota may stop other kbs or other maintenance of the tenant.
                logger.warning("cannot embed documents of '%s', found by word only: %s", kb.name, error)

    async def clean(self, tenant: str) -> None:
        """Remove retired Spaces whose grace period is over."""
        spaces = self._book.of(tenant)
        for space in await spaces.list_expired(now()):
            await spaces.drop(space)
