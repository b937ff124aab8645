"""EMBED: the chunks of a wave → one vector each. A long document is embedded in slices that survive a crash."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Embedder
from ragstone.core.types import KnowledgeBase, Matrix, Vector
from ragstone.ingest.belt import LONG_CHUNKS
from ragstone.ingest.parts import LedgerParts
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.tally import Tally, at_stage

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


class Foreign(Exception):
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
    tally: Tally,
) -> Embedded:
    """Vectors for a wave. Text that the index already holds is not embedded again."""
    texts = [chunk.contextual for document in wave for chunk in document.chunks]
    known = await ledger.known_vectors(tenant, kb, texts) if kb else {}
    space = kb.space.model if kb and kb.space else ""
    try:
        with tally.times.measure("embed", len(texts)):
            if len(wave) == 1 and len(texts) >= LONG_CHUNKS:
                rows, model = await _long(ledger, embedder, tenant, wave[0], known, space, tally)
            else:
                rows, model = await _missing(embedder, texts, known, space, tally)
    except (ModelUnavailable, ModelMismatch):
        raise
    except ModelError as error:
        if any(document.task.group.ticket and not document.task.group.last_attempt for document in wave):
            raise ModelBusy(str(error), hint=error.hint) from error
        logger.warning("stored without vectors: %s", error)
        tally.degraded[f"embedding: {error}"] = None
        for document in wave:
            document.task.group.remarks.append(f"searchable by word only: {error}")
        return Embedded(None, "")
    except Foreign as problem:
        tally.foreign(problem.model, space)
        return Embedded(None, "")
    return Embedded(np.stack([rows[text] for text in texts]), model)


async def _missing(
    embedder: Embedder, texts: Sequence[str], known: Mapping[str, Vector], space: str, tally: Tally
) -> tuple[dict[str, Vector], str]:
    rows = dict(known)
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if not missing:
        return rows, space
    embedded = await embedder.embed(missing, "document")
    if space and embedded.model != space:
        raise Foreign(embedded.model)
    rows.update(zip(missing, embedded.vectors, strict=True))
    tally.skipped_chunks += len(embedded.failed)
    return rows, embedded.model


async def _long(
    ledger: Ledger,
    embedder: Embedder,
    tenant: str,
    document: Prepared,
    known: Mapping[str, Vector],
    space: str,
    tally: Tally,
) -> tuple[dict[str, Vector], str]:
    """The same slice by slice: what a worker that died had embedded is read back."""
    parts = LedgerParts(ledger, tenant, document.task, document.made_from)
    total = len(document.chunks)
    rows = dict(known)
    model = space
    done = 0
    at_stage(document.task, "embed", chunks=done, chunks_total=total)
    slices = (
        _slice(parts, embedder, number * SLICE_CHUNKS, wanted, space, tally)
        for number, wanted in enumerate(_wanted(document, known))
    )
    async with aclosing(_in_order(slices)) as finished:
        async for made, answered in finished:
            if model and answered and answered != model:
                raise Foreign(answered)
            model = model or answered
            rows.update(made)
            done = min(done + SLICE_CHUNKS, total)
            at_stage(document.task, "embed", chunks=done, chunks_total=total)
    return rows, model


def _wanted(document: Prepared, known: Mapping[str, Vector]) -> Iterator[list[str]]:
    """The texts of each slice that neither the index nor a slice before it has."""
    seen = set(known)
    for first in range(0, len(document.chunks), SLICE_CHUNKS):
        texts = dict.fromkeys(chunk.contextual for chunk in document.chunks[first : first + SLICE_CHUNKS])
        wanted = [text for text in texts if text not in seen]
        seen.update(wanted)
        yield wanted


async def _slice(
    parts: LedgerParts, embedder: Embedder, first: int, wanted: Sequence[str], space: str, tally: Tally
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
    rows, answered = await _missing(embedder, wanted, {}, space, tally)
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
