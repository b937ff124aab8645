"""One ingest run: fetch → extract → normalize → chunk → embed → store.

Three things go on at once: the next documents are read, parsed and cut while a wave of chunks is with the
model, and the wave before is being written. A wave gathers the chunks of several documents, so that the
model's batches are full even when documents are small; each document still becomes visible whole or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable, RagstoneError
from ragstone.core.ids import document_id
from ragstone.core.protocols import Embedder, Ledger
from ragstone.core.types import Failure, IngestReport, Item, KnowledgeBase, Matrix, NewVersion
from ragstone.ingest.prepare import Prepared, Preparer, unusable

logger = logging.getLogger(__name__)
WAVE_CHUNKS = 64
"""Few enough that progress shows on a slow machine, enough to fill the model's batches."""
IN_FLIGHT = 2
LOOK_UP = 32
LOOK_UP_BYTES = 64 * 1024 * 1024
AHEAD = 512


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; `document` is the one that has just ended."""

    done: int
    chunks: int
    failed: int
    document: str


OnProgress = Callable[[Progress], None]


@dataclass
class Tally:
    """The report while it grows."""

    on_progress: OnProgress | None
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    chunks: int = 0
    skipped_chunks: int = 0
    failed: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    degraded: dict[str, None] = field(default_factory=dict)

    def ended(self, uri: str) -> None:
        """One more item is through, whatever became of it."""
        if self.on_progress:
            done = self.added + self.updated + self.unchanged + len(self.failed)
            self.on_progress(Progress(done, self.chunks, len(self.failed), uri))

    def foreign(self, model: str, space: str) -> None:
        """C-07: vectors of a fallback model never enter a Space of another; what is left is search by word."""
        self.degraded[f"embedding: {model} answered, but this index is of {space}"] = None

    def fail(self, failure: Failure) -> None:
        self.failed.append(failure)
        self.ended(failure.uri)


class IngestPipeline:
    """Turns items into live documents."""

    def __init__(self, ledger: Ledger, preparer: Preparer, embedder: Embedder) -> None:
        self._ledger = ledger
        self._preparer = preparer
        self._embedder = embedder

    async def run(
        self,
        tenant: str,
        kb_name: str,
        items: Iterable[Item | Failure],
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Ingest all items; one that fails is reported and the rest go on."""
        started = time.perf_counter()
        tally = Tally(on_progress)
        async with self._ledger.transaction(tenant) as tx:
            kb = await tx.open_kb(kb_name)
        self._check_model(kb)
        belt = Belt(AHEAD)
        producer = asyncio.create_task(self._produce(tenant, kb, iter(items), belt, tally))
        try:
            await self._consume(tenant, kb, belt, tally)
            await producer
        finally:
            producer.cancel()
            await asyncio.gather(producer, return_exceptions=True)
        stats = await self._ledger.stats(tenant, kb)
        return IngestReport(
            added=tally.added,
            updated=tally.updated,
            unchanged=tally.unchanged,
            failed=tuple(tally.failed),
            documents=stats.documents,
            chunks=stats.chunks,
            seconds=round(time.perf_counter() - started, 3),
            warnings=tuple(tally.warnings),
            skipped_chunks=tally.skipped_chunks,
            degraded=tuple(tally.degraded),
        )

    def _check_model(self, kb: KnowledgeBase) -> None:
        # A fallback may have taken the configured model's place: the kb may be of either.
        models = (self._preparer.model, self._embedder.model.id)
        if kb.space and kb.space.model not in models:
            raise ModelMismatch(
                f"knowledge base '{kb.name}' was built with {kb.space.model}, not with {models[0]}",
                hint=f"set embedding.model to {kb.space.model.split('@')[0]}, or ingest into another --kb",
            )

    async def _produce(
        self, tenant: str, kb: KnowledgeBase, items: Iterator[Item | Failure], belt: Belt, tally: Tally
    ) -> None:
        try:
            while batch := await asyncio.to_thread(_next_batch, items):
                usable = []
                for entry in batch:
                    failure = entry if isinstance(entry, Failure) else unusable(entry)
                    if failure:
                        tally.fail(failure)
                    elif isinstance(entry, Item):
                        usable.append(entry)
                changed = await self._changed(tenant, kb, usable, tally)
                await self._prepare(changed, belt, tally)
        finally:
            belt.end()

    async def _changed(
        self, tenant: str, kb: KnowledgeBase, items: Sequence[Item], tally: Tally
    ) -> list[tuple[Item, bool]]:
        """The items there is something to do for, each with whether an earlier version is live."""
        live = {}
        for source in {item.source for item in items}:
            ids = [item.external_id for item in items if item.source == source]
            found = await self._ledger.find(tenant, kb, source, ids)
            live.update({(source, external_id): document for external_id, document in found.items()})
        changed = []
        for item in items:
            known = live.get((item.source, item.external_id))
            if self._preparer.is_current(item, known):
                tally.unchanged += 1
                tally.ended(item.uri)
            else:
                changed.append((item, known is not None))
        return changed

    async def _prepare(self, changed: Sequence[tuple[Item, bool]], belt: Belt, tally: Tally) -> None:
        tasks = [asyncio.create_task(self._preparer.prepare(item, known)) for item, known in changed]
        try:
            for (item, _), task in zip(changed, tasks, strict=True):
                try:
                    await belt.put(await task)
                except RagstoneError as error:
                    tally.fail(Failure(item.uri, error.code, str(error)))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _consume(self, tenant: str, kb: KnowledgeBase, belt: Belt, tally: Tally) -> None:
        """Embed and store waves in order; the model gets the next one before it has finished the last."""
        flying: deque[asyncio.Task[None]] = deque()
        stored: asyncio.Task[None] | None = None
        try:
            while wave := await belt.wave():
                stored = asyncio.create_task(self._embed_and_store(tenant, kb.name, wave, stored, tally))
                flying.append(stored)
                if len(flying) > IN_FLIGHT:
                    await flying.popleft()
            await asyncio.gather(*flying)
        finally:
            for task in flying:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)

    async def _embed_and_store(
        self,
        tenant: str,
        kb_name: str,
        wave: Sequence[Prepared],
        before: asyncio.Task[None] | None,
        tally: Tally,
    ) -> None:
        vectors, model = await self._embed(tenant, kb_name, wave, tally)
        if before:
            await before
        await self._store(tenant, kb_name, wave, vectors, model, tally)

    async def _embed(
        self, tenant: str, kb_name: str, wave: Sequence[Prepared], tally: Tally
    ) -> tuple[Matrix | None, str]:
        """One row per chunk of the wave, and the model that made them; no rows when no model could be reached."""
        texts = [chunk.contextual for document in wave for chunk in document.chunks]
        kb = await self._ledger.kb(tenant, kb_name)
        known = await self._ledger.known_vectors(tenant, kb, texts) if kb else {}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        model = kb.space.model if kb and kb.space else ""
        rows = dict(known)
        if missing:
            try:
                embedded = await self._embedder.embed(missing, "document")
            except (ModelUnavailable, ModelMismatch):
                raise
            except ModelError as error:
                logger.warning("stored without vectors: %s", error)
                tally.degraded[f"embedding: {error}"] = None
                return None, ""
            if model and embedded.model != model:
                tally.foreign(embedded.model, model)
                return None, ""
            model = embedded.model
            rows.update(zip(missing, embedded.vectors, strict=True))
            tally.skipped_chunks += len(embedded.failed)
        return np.stack([rows[text] for text in texts]), model

    async def _store(
        self,
        tenant: str,
        kb_name: str,
        wave: Sequence[Prepared],
        vectors: Matrix | None,
        model: str,
        tally: Tally,
    ) -> None:
        async with self._ledger.transaction(tenant) as tx:
            kb = await tx.open_kb(kb_name)
            if vectors is not None and kb.space and kb.space.model != model:
                # The wave before opened the Space while a fallback embedded this one.
                tally.foreign(model, kb.space.model)
                vectors = None
            if vectors is not None:
                kb = await tx.open_space(kb, model, vectors.shape[1])
            start = 0
            for document in wave:
                end = start + len(document.chunks)
                version = _version(tenant, kb_name, document, None if vectors is None else vectors[start:end])
                number = await tx.stage(kb, version)
                await tx.activate(kb, version.document_id, number)
                start = end
        for document in wave:
            tally.updated += document.known
            tally.added += not document.known
            tally.chunks += len(document.chunks)
            tally.warnings += [f"{document.item.uri}: {warning}" for warning in document.parsed.warnings]
            tally.ended(document.item.uri)


class Belt:
    """Carries prepared documents from the producer to the consumer, a bounded number at a time."""

    def __init__(self, room: int) -> None:
        self._queue: asyncio.Queue[Prepared | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(room)

    async def put(self, document: Prepared) -> None:
        """Wait for room, then hand over."""
        await self._room.acquire()
        self._queue.put_nowait(document)

    def end(self) -> None:
        """Nothing more will come."""
        self._queue.put_nowait(None)

    async def wave(self) -> list[Prepared]:
        """The next documents, as many as fill the model's batches; empty at the end."""
        wave: list[Prepared] = []
        chunks = 0
        while chunks < WAVE_CHUNKS:
            document = await self._queue.get()
            if document is None:
                self.end()
                break
            self._room.release()
            wave.append(document)
            chunks += len(document.chunks)
        return wave


def _next_batch(items: Iterator[Item | Failure]) -> list[Item | Failure]:
    """A few items, fewer when they are large: all of them are in memory at once."""
    batch: list[Item | Failure] = []
    size = 0
    for entry in items:
        batch.append(entry)
        size += len(entry.content) if isinstance(entry, Item) else 0
        if len(batch) == LOOK_UP or size >= LOOK_UP_BYTES:
            break
    return batch


def _version(tenant: str, kb_name: str, document: Prepared, vectors: Matrix | None) -> NewVersion:
    item = document.item
    return NewVersion(
        document_id=document_id(tenant, kb_name, item.source, item.external_id),
        source=item.source,
        external_id=item.external_id,
        uri=item.uri,
        title=document.parsed.title,
        content_hash=document.content_hash,
        text=document.parsed.text,
        media_type=document.parsed.media_type,
        metadata=document.metadata,
        recipe=document.recipe,
        modified_at=item.modified_at,
        chunks=document.chunks,
        terms=document.terms,
        vectors=vectors,
    )
