"""EMBED: vectors from the model of the kb, with checkpoints in long documents.

A wave is some documents whose chunks go to the model together.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ragstone.core.background import let_questions_go_first
from ragstone.core.batches import batched
from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.core.ids import content_hash
from ragstone.core.ledger import Ledger
from ragstone.core.model_types import model_name
from ragstone.core.protocols import Embedder, EmbedderFor, SpaceBook
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import Admission
from ragstone.core.types import KnowledgeBase, Matrix, Space, Vector
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.work import PinnedKb, RunReport, WorkItem

Made = TypeVar("Made")
logger = logging.getLogger(__name__)
FIRST_CHUNKS = 16
"""The first wave is small, so that something can be searched soon."""
WAVE_CHUNKS = 64
"""Few enough that progress shows on a slow machine, enough for batches of like length."""
LONG_CHUNKS = 64
"""From this many chunks on a document is a wave of its own, embedded slice by slice."""
AHEAD_CHUNKS = 4096
"""Chunks that may wait for the model."""
SLICE_CHUNKS = 32
"""Few enough that progress shows on a slow machine."""
NUL = "\0"
SLICES_AHEAD = 3
"""Slices that wait behind the one at work: the model's batches are of like length, and it is never idle."""


class ChunkQueue:
    """Prepared documents that wait for the model: a bounded number of chunks, or one larger document."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Prepared | None] = asyncio.Queue()
        self._held: Prepared | None = None
        self._waiting = 0
        self._room = asyncio.Condition()
        self._wave_chunks = FIRST_CHUNKS

    async def put(self, document: Prepared) -> None:
        """Wait for room, then add a document."""
        async with self._room:
            await self._room.wait_for(lambda: not self._waiting or self._waiting + len(document.chunks) <= AHEAD_CHUNKS)
            self._waiting += len(document.chunks)
        self._queue.put_nowait(document)

    def end(self) -> None:
        """Mark the end: no more documents will come."""
        self._queue.put_nowait(None)

    async def next_wave(self) -> list[Prepared]:
        """Return the next documents, enough to fill the model's batches, a long one alone; empty at the end."""
        wave: list[Prepared] = []
        chunks = 0
        while chunks < self._wave_chunks:
            document = self._held or await self._take()
            self._held = None
            if document is None:
                self.end()
                break
            if wave and len(document.chunks) >= LONG_CHUNKS:
                self._held = document
                break
            wave.append(document)
            chunks += len(document.chunks)
        self._wave_chunks = WAVE_CHUNKS
        return wave

    async def _take(self) -> Prepared | None:
        """Return the next document, None at the end; its room is free at once, since a large one may wait for it."""
        document = await self._queue.get()
        if document is not None:
            async with self._room:
                self._waiting -= len(document.chunks)
                self._room.notify_all()
        return document


@dataclass(frozen=True, slots=True)
class LedgerPartStore:
    """Parts of an unfinished document in the ledger, keyed by its id and recipe: other content finds none."""

    ledger: Ledger
    tenant: str
    work: WorkItem
    recipe_key: str

    async def load(self, part: str) -> bytes | None:
        return await self.ledger.of(self.tenant).part(self.work.document_id, self.recipe_key, part)

    async def save(self, part: str, data: bytes) -> None:
        """Save a part, unless the document was deleted or its job given to another worker."""
        work = self.work
        async with self.ledger.transaction(self.tenant) as tx:
            if work.batch.ticket and not await tx.holds(work.batch.ticket):
                return
            if work.known and not await tx.existing([work.document_id]):
                return
            await tx.save_part(work.document_id, self.recipe_key, part, data)


@dataclass(frozen=True, slots=True)
class Embedded:
    """One row per chunk of the wave, and the model that made them; no rows if no model could be reached."""

    vectors: Matrix | None
    model: str

    def fit(self, space: Space) -> bool:
        """Return whether there are vectors, and they are of the model and dimension of a Space."""
        return self.vectors is not None and (self.model, self.vectors.shape[1]) == (space.model, space.dimension)


class ModelBusy(ModelError):
    """The model failed, and the job has another attempt left."""

    code = "model_failed"
    retryable = True


class ForeignModel(Exception):
    """A model answered that is not that of the index."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.model = model


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The configured model, or that of the live Space of a kb that was moved to it.

    A process that was started before `ragstone reembed` goes on with the model that the kb has now. A kb that never
    had the configured model is refused, since moving it must be asked for.
    """

    configured: str
    own: Embedder
    book: SpaceBook | None = None
    embedder_for: EmbedderFor | None = None
    of_tenant: Callable[[str], Awaitable[Embedder | None]] | None = None
    """Returns the embedder that a tenant has chosen for its new kbs, or None."""

    async def embedder(self, tenant: str, kb: KnowledgeBase | None) -> Embedder:
        """Return the embedder of this kb; raise `ModelMismatch` with a remedy if its model is not configured."""
        # A fallback may have replaced the configured model: the kb may be of either.
        chosen = await self.of_tenant(tenant) if self.of_tenant else None
        if kb is None or kb.space is None:
            return chosen or self.own
        if chosen and chosen.model.fits(kb.space):
            return chosen
        if self._is_own(kb.space):
            return self.own
        if self.embedder_for and (await self._has_left(tenant, kb) or (chosen and chosen.model.id == kb.space.model)):
            return await self.embedder_for(kb.space)
        if kb.space.model == self.configured:
            return self.own  # its vectors are refused for their dimension
        wanted, present = map(model_name, (self.configured, kb.space.model))
        raise ModelMismatch(
            f"knowledge base '{kb.name}' was built with {kb.space.model}, not with {self.configured}",
            remedy=Remedy(Action.REEMBED, model=wanted, kb=kb.name, current_model=present),
        )

    def _is_own(self, space: Space) -> bool:
        """Return whether a Space is of the configured model, whose place its fallback may have taken."""
        return self.own.model.fits(space) or self.own.model.id != self.configured == space.model

    async def _has_left(self, tenant: str, kb: KnowledgeBase) -> bool:
        """Return whether a kb has another Space that is of the configured model."""
        return self.book is not None and any(self._is_own(space) for space, _ in await self.book.of(tenant).outline(kb))


@dataclass(frozen=True, slots=True)
class WaveEmbedder:
    """Embeds the waves of one run."""

    pinned: PinnedKb
    choice: ModelChoice
    gate: Admission
    report: RunReport

    async def embed(self, wave: Sequence[Prepared]) -> Embedded:
        """Return vectors for the live Space. Text that the index already holds is not embedded again."""
        kb, tenant = await self.pinned.current(), self.pinned.tenant
        embedder = await self.choice.embedder(tenant, kb)
        async with self.gate.paying(tenant):
            with let_questions_go_first():
                return await self._embed_wave(embedder, kb, wave)

    async def _embed_wave(self, embedder: Embedder, kb: KnowledgeBase, wave: Sequence[Prepared]) -> Embedded:
        texts = [chunk.contextual for document in wave for chunk in document.chunks]
        known = await self.pinned.ledger.of(self.pinned.tenant).known_vectors(kb, texts)
        space = kb.space.model if kb.space else ""
        try:
            with self.report.times.measure("embed", len(texts)), self.report.with_model(len(texts)) as come_back:
                if len(wave) == 1 and len(texts) >= LONG_CHUNKS:
                    rows, model = await self._embed_long(embedder, wave[0], known, space, come_back)
                else:
                    rows, model = await self._embed_missing(embedder, texts, known, space)
        except (ModelUnavailable, ModelMismatch):
            raise
        except ModelError as error:
            batches = [document.work.batch for document in wave]
            if any(batch.ticket and not batch.last_attempt for batch in batches):
                raise ModelBusy(str(error), hint=error.hint, remedy=error.remedy) from error
            logger.warning("storing documents without vectors: %s", error)
            self.report.degraded[f"embedding: {error}"] = None
            for batch in batches:
                batch.remarks.append(f"searchable by word only: {error}")
            return Embedded(None, "")
        except ForeignModel as problem:
            self.report.note_foreign_model(problem.model, space)
            return Embedded(None, "")
        vectors = [rows[text] for text in texts]
        if kb.space:
            _require_dimension(kb, kb.space, vectors)
        return Embedded(np.stack(vectors), model)

    async def ensure_current(self, wave: Sequence[Prepared], embedded: Embedded) -> Embedded:
        """Return the vectors, embedded again if the kb was moved to another model since."""
        space = (await self.pinned.current()).space
        if embedded.vectors is None or space is None or embedded.fit(space):
            return embedded
        try:
            return await self.embed(wave)
        except (ModelUnavailable, ModelMismatch) as error:
            # The wave is found by word only, until a process that has the model fills its Space.
            logger.warning("storing documents without vectors: %s", error)
            return embedded

    async def _embed_missing(
        self, embedder: Embedder, texts: Sequence[str], known: Mapping[str, Vector], space: str
    ) -> tuple[dict[str, Vector], str]:
        rows = dict(known)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if not missing:
            return rows, space
        embedded = await embedder.embed(missing, "document")
        if space and embedded.model != space:
            raise ForeignModel(embedded.model)
        rows.update(zip(missing, embedded.vectors, strict=True))
        self.report.skipped_chunks += len(embedded.failed)
        return rows, embedded.model

    async def _embed_long(
        self,
        embedder: Embedder,
        document: Prepared,
        known: Mapping[str, Vector],
        space: str,
        come_back: Callable[[int], None],
    ) -> tuple[dict[str, Vector], str]:
        """Embed a long document slice by slice; slices that an earlier attempt embedded are read back."""
        work, total = document.work, len(document.chunks)
        parts = LedgerPartStore(self.pinned.ledger, self.pinned.tenant, work, document.recipe_key)
        rows = dict(known)
        model = space
        done = 0
        work.note_stage("embed", chunks=done, chunks_total=total)
        slices = (
            self._embed_slice(embedder, parts, number * SLICE_CHUNKS, wanted, space)
            for number, wanted in enumerate(_missing_by_slice(document, known))
        )
        async with aclosing(_in_order(slices)) as finished:
            async for vectors, answered in finished:
                if model and answered and answered != model:
                    raise ForeignModel(answered)
                model = model or answered
                rows.update(vectors)
                before, done = done, min(done + SLICE_CHUNKS, total)
                come_back(done - before)
                work.note_stage("embed", chunks=done, chunks_total=total)
        return rows, model

    async def _embed_slice(
        self, embedder: Embedder, parts: LedgerPartStore, first: int, wanted: Sequence[str], space: str
    ) -> tuple[dict[str, Vector], str]:
        if not wanted:
            return {}, ""
        model = space or embedder.model.id
        dimension = embedder.model.dimension
        # Which texts of the slice are wanted depends on what the index held then and holds now.
        part = f"vectors:{first}:{content_hash(NUL.join(wanted))[:16]}:{content_hash(model)[:16]}"
        kept = await parts.load(part)
        if kept is not None and len(kept) == len(wanted) * dimension * 2:
            vectors = np.frombuffer(kept, np.float16).astype(np.float32).reshape(len(wanted), dimension)
            return dict(zip(wanted, vectors, strict=True)), model
        rows, answered = await self._embed_missing(embedder, wanted, {}, space)
        made = np.stack([rows[text] for text in wanted])
        if answered == model and made.shape[1] == dimension:
            await _finish(parts.save(part, made.astype(np.float16).tobytes()))
        return rows, answered


def _require_dimension(kb: KnowledgeBase, space: Space, vectors: Sequence[Vector]) -> None:
    """Raise `ModelMismatch` for vectors that are longer or shorter than those of the Space."""
    other = next((len(vector) for vector in vectors if len(vector) != space.dimension), None)
    if other is not None:
        raise ModelMismatch(
            f"knowledge base '{kb.name}' was built with {space.model} ({space.dimension} dimensions), "
            f"not with {space.model} ({other})",
            hint=f"set embedding.dimensions to {space.dimension}, or",
            remedy=Remedy(Action.REEMBED, model=model_name(space.model), kb=kb.name),
        )


async def _finish(work: Coroutine[None, None, None]) -> None:
    """Do the work to its end also when it is cancelled: what the model has made is saved for the next run."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _missing_by_slice(document: Prepared, known: Mapping[str, Vector]) -> Iterator[list[str]]:
    """Yield the texts of each slice that neither the index nor an earlier slice has."""
    seen = set(known)
    for chunks in batched(document.chunks, SLICE_CHUNKS):
        texts = dict.fromkeys(chunk.contextual for chunk in chunks)
        wanted = [text for text in texts if text not in seen]
        seen.update(wanted)
        yield wanted


async def _in_order(work: Iterable[Coroutine[None, None, Made]]) -> AsyncGenerator[Made]:
    """Yield results in order, with a few started ahead."""
    flying: deque[asyncio.Task[Made]] = deque()
    try:
        for coroutine in work:
            flying.append(asyncio.create_task(coroutine))
            if len(flying) > SLICES_AHEAD:
                yield await flying.popleft()
        while flying:
            yield await flying.popleft()
    except Exception:
        # The others save their slices for the next attempt.
        await asyncio.gather(*flying, return_exceptions=True)
        raise
    finally:
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)
