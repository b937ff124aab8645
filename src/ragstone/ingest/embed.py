"""Embed chunks: which model, which texts again, and checkpoints of long documents."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.core.ledger import Ledger
from ragstone.core.model_types import model_name
from ragstone.core.protocols import Embedder
from ragstone.core.remedies import Action, Remedy
from ragstone.core.spaces import EmbedderFor, SpaceBook
from ragstone.core.tenants import Admission
from ragstone.core.types import KnowledgeBase, Matrix, Vector
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.report import RunReport, note_stage
from ragstone.ingest.work import PinnedKb, WorkItem

WAVE_CHUNKS = 64
"""Few enough that progress shows on a slow machine, enough for batches of like length."""
LONG_CHUNKS = 256
"""From this many chunks on a document is a wave of its own, embedded slice by slice."""
AHEAD_CHUNKS = 4096
"""How many chunks may wait for the model."""


class ChunkQueue:
    """Holds a bounded number of chunks; a document larger than that travels alone."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Prepared | None] = asyncio.Queue()
        self._held: Prepared | None = None
        self._waiting = 0
        self._room = asyncio.Condition()

    async def put(self, document: Prepared) -> None:
        """Wait for room, then hand over."""
        async with self._room:
            await self._room.wait_for(
                lambda: not self._waiting or self._waiting + len(document.chunks) <= AHEAD_CHUNKS
            )
            self._waiting += len(document.chunks)
        self._queue.put_nowait(document)

    def end(self) -> None:
        """Nothing more will come."""
        self._queue.put_nowait(None)

    async def next_wave(self) -> list[Prepared]:
        """The next documents, as many as fill the model's batches, a long one alone; empty at the end."""
        wave: list[Prepared] = []
        chunks = 0
        while chunks < WAVE_CHUNKS:
            document = self._held or await self._queue.get()
            self._held = None
            if document is None:
                self.end()
                break
            if wave and len(document.chunks) >= LONG_CHUNKS:
                self._held = document
                break
            wave.append(document)
            chunks += len(document.chunks)
        async with self._room:
            self._waiting -= chunks
            self._room.notify_all()
        return wave


@dataclass(frozen=True, slots=True)
class LedgerPartStore:
    """Keeps parts under the document's id and what they were made from: other content finds none of them."""

    ledger: Ledger
    tenant: str
    work: WorkItem
    recipe_key: str

    async def load(self, part: str) -> bytes | None:
        return await self.ledger.part(self.tenant, self.work.document_id, self.recipe_key, part)

    async def save(self, part: str, data: bytes) -> None:
        """Nothing is kept of what was deleted or given to another worker meanwhile."""
        work = self.work
        async with self.ledger.transaction(self.tenant) as tx:
            if work.batch.ticket and not await tx.holds(work.batch.ticket):
                return
            if work.known and not await tx.has_document(work.document_id):
                return
            await tx.save_part(work.document_id, self.recipe_key, part, data)


Made = TypeVar("Made")
logger = logging.getLogger(__name__)
SLICE_CHUNKS = 32
"""Few enough that progress shows on a slow machine."""
SLICES_AHEAD = 3
"""Slices that wait behind the one at work: the model's batches are of like length, and it is never idle."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """One row per chunk of the wave, and the model that made them; no rows when no model could be reached."""

    vectors: Matrix | None
    model: str


class ModelBusy(ModelError):
    """The model failed, and there is another attempt to wait for it."""

    code = "model_failed"
    retryable = True


class ForeignModel(Exception):
    """Another model than that of the index answered."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.model = model


async def embed(
    ledger: Ledger,
    embedder: Embedder,
    tenant: str,
    kb: KnowledgeBase | None,
    wave: Sequence[Prepared],
    report: RunReport,
) -> Embedded:
    """Vectors for a wave. Text that the index already holds is not embedded again."""
    texts = [chunk.contextual for document in wave for chunk in document.chunks]
    known = await ledger.known_vectors(tenant, kb, texts) if kb else {}
    space = kb.space.model if kb and kb.space else ""
    try:
        with report.times.measure("embed", len(texts)):
            if len(wave) == 1 and len(texts) >= LONG_CHUNKS:
                rows, model = await _embed_long(ledger, embedder, tenant, wave[0], known, space, report)
            else:
                rows, model = await _embed_missing(embedder, texts, known, space, report)
    except (ModelUnavailable, ModelMismatch):
        raise
    except ModelError as error:
        if any(document.work.batch.ticket and not document.work.batch.last_attempt for document in wave):
            raise ModelBusy(str(error), hint=error.hint, remedy=error.remedy) from error
        logger.warning("stored without vectors: %s", error)
        report.degraded[f"embedding: {error}"] = None
        for document in wave:
            document.work.batch.remarks.append(f"searchable by word only: {error}")
        return Embedded(None, "")
    except ForeignModel as problem:
        report.note_foreign_model(problem.model, space)
        return Embedded(None, "")
    return Embedded(np.stack([rows[text] for text in texts]), model)


async def _embed_missing(
    embedder: Embedder, texts: Sequence[str], known: Mapping[str, Vector], space: str, report: RunReport
) -> tuple[dict[str, Vector], str]:
    rows = dict(known)
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if not missing:
        return rows, space
    embedded = await embedder.embed(missing, "document")
    if space and embedded.model != space:
        raise ForeignModel(embedded.model)
    rows.update(zip(missing, embedded.vectors, strict=True))
    report.skipped_chunks += len(embedded.failed)
    return rows, embedded.model


async def _embed_long(
    ledger: Ledger,
    embedder: Embedder,
    tenant: str,
    document: Prepared,
    known: Mapping[str, Vector],
    space: str,
    report: RunReport,
) -> tuple[dict[str, Vector], str]:
    """The same slice by slice: what a worker that died had embedded is read back."""
    parts = LedgerPartStore(ledger, tenant, document.work, document.recipe_key)
    total = len(document.chunks)
    rows = dict(known)
    model = space
    done = 0
    note_stage(document.work, "embed", chunks=done, chunks_total=total)
    slices = (
        _embed_slice(parts, embedder, number * SLICE_CHUNKS, wanted, space, report)
        for number, wanted in enumerate(_missing_by_slice(document, known))
    )
    async with aclosing(_in_order(slices)) as finished:
        async for made, answered in finished:
            if model and answered and answered != model:
                raise ForeignModel(answered)
            model = model or answered
            rows.update(made)
            done = min(done + SLICE_CHUNKS, total)
            note_stage(document.work, "embed", chunks=done, chunks_total=total)
    return rows, model


def _missing_by_slice(document: Prepared, known: Mapping[str, Vector]) -> Iterator[list[str]]:
    """The texts of each slice that neither the index nor a slice before it has."""
    seen = set(known)
    for first in range(0, len(document.chunks), SLICE_CHUNKS):
        texts = dict.fromkeys(chunk.contextual for chunk in document.chunks[first : first + SLICE_CHUNKS])
        wanted = [text for text in texts if text not in seen]
        seen.update(wanted)
        yield wanted


async def _embed_slice(
    parts: LedgerPartStore,
    embedder: Embedder,
    first: int,
    wanted: Sequence[str],
    space: str,
    report: RunReport,
) -> tuple[dict[str, Vector], str]:
    if not wanted:
        return {}, ""
    model = space or embedder.model.id
    dimension = embedder.model.dimension
    part = f"vectors:{first}:{len(wanted)}:{model[:32]}"
    kept = await parts.load(part)
    if kept is not None and len(kept) == len(wanted) * dimension * 2:
        vectors = np.frombuffer(kept, np.float16).astype(np.float32).reshape(len(wanted), dimension)
        return dict(zip(wanted, vectors, strict=True)), model
    rows, answered = await _embed_missing(embedder, wanted, {}, space, report)
    made = np.stack([rows[text] for text in wanted])
    if answered == model and made.shape[1] == dimension:
        await parts.save(part, made.astype(np.float16).tobytes())
    return rows, answered


async def _in_order(work: Iterable[Coroutine[None, None, Made]]) -> AsyncGenerator[Made]:
    """Results in order, a few begun ahead."""
    flying: deque[asyncio.Task[Made]] = deque()
    try:
        for one in work:
            flying.append(asyncio.create_task(one))
            if len(flying) > SLICES_AHEAD:
                yield await flying.popleft()
        while flying:
            yield await flying.popleft()
    except Exception:
        # What the others make is kept for the next attempt.
        await asyncio.gather(*flying, return_exceptions=True)
        raise
    finally:
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The configured model, or that of the live Space of a kb that was moved to it.

    A process that was started before `ragstone reembed` goes on with the model that the kb has now. A kb that never
    had the configured model is refused: somebody has to say that it is to be moved.
    """

    configured: str
    own: Embedder
    book: SpaceBook | None = None
    embedder_for: EmbedderFor | None = None
    of_tenant: Callable[[str], Awaitable[Embedder | None]] | None = None
    """The embedder that a tenant has chosen for its new kbs; None for one that has chosen none."""

    async def embedder(self, tenant: str, kb: KnowledgeBase | None) -> Embedder:
        """What embeds for this kb; `ModelMismatch` with the command that repairs it when nothing may."""
        # A fallback may have taken the configured model's place: the kb may be of either.
        chosen = await self.of_tenant(tenant) if self.of_tenant else None
        if kb is None or kb.space is None:
            return chosen or self.own
        if chosen and kb.space.model == chosen.model.id:
            return chosen
        if kb.space.model in (self.configured, self.own.model.id):
            return self.own
        if self.book and self.embedder_for and self.configured in await self.book.models(tenant, kb):
            return await self.embedder_for(kb.space.model)
        wanted, present = map(model_name, (self.configured, kb.space.model))
        raise ModelMismatch(
            f"knowledge base '{kb.name}' was built with {kb.space.model}, not with {self.configured}",
            remedy=Remedy(Action.REEMBED, model=wanted, kb=kb.name, current_model=present),
        )


@dataclass(frozen=True, slots=True)
class WaveEmbedder:
    """What a run embeds with."""

    pinned: PinnedKb
    choice: ModelChoice
    gate: Admission
    report: RunReport

    async def embed(self, wave: Sequence[Prepared]) -> Embedded:
        """Vectors for the live Space."""
        kb, tenant = await self.pinned.current(), self.pinned.tenant
        embedder = await self.choice.embedder(tenant, kb)
        async with self.gate.paying(tenant):
            return await embed(self.pinned.ledger, embedder, tenant, kb, wave, self.report)

    async def ensure_current(self, wave: Sequence[Prepared], embedded: Embedded) -> Embedded:
        """The vectors, made anew if the kb has been moved to another model since."""
        space = (await self.pinned.current()).space
        if embedded.vectors is None or space is None or space.model == embedded.model:
            return embedded
        try:
            return await self.embed(wave)
        except (ModelUnavailable, ModelMismatch) as error:
            # What is stored now is found by word; by meaning once somebody who has the model fills its Space.
            logger.warning("a wave is stored without vectors: %s", error)
            return embedded
