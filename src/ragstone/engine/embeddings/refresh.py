"""Refresh the embeddings of a kb: fill in missing vectors, and build all of them again beside the live Space.

A scheduled refresh always builds all of them; the others only when a sample shows that the model's vectors changed.
Progress is kept in the ledger alone, so a refresh that is run again after a crash goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ragstone.core.background import let_questions_go_first
from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable, NotFoundError, unknown_kb
from ragstone.core.ids import opaque_id
from ragstone.core.jobs import Job, JobProgress
from ragstone.core.ledger import Ledger
from ragstone.core.model_types import model_name
from ragstone.core.protocols import Embedder, SpaceBook
from ragstone.core.remedies import Action, Remedy, advise
from ragstone.core.spaces import EmbeddedText
from ragstone.core.types import KnowledgeBase, Space
from ragstone.engine.access import TenantAccess
from ragstone.engine.embeddings.reembed import Reembedder, ReembedReport, find_building
from ragstone.ingest.backfill import FillProgress, FillResult, OnFill, SpaceFiller
from ragstone.models.embedders.pool import EmbedderPool

Reread = Callable[[str, str], Awaitable[int]]
"""Queues a look from the beginning at all sources of a tenant's kb; how many."""
Tell = Callable[[JobProgress], None]
ALIKE = 0.99
"""The cosine of two vectors of one text by one model. Runtimes and float16 cost 0.0003; another model far more."""
BATCH = 128
Outcome = Literal["nothing embedded", "fresh", "filled", "promoted", "not promoted"]


@dataclass(frozen=True, slots=True)
class Freshness:
    """A sample of stored vectors, compared with what the model makes of their text today."""

    sampled: int = 0
    differing: int = 0
    """Those that the model would make otherwise today."""
    lowest: float | None = None
    """The cosine of the one that differs most."""

    @property
    def is_stale(self) -> bool:
        return self.differing > 0


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """The findings and the outcome of a refresh."""

    kb: str
    outcome: Outcome
    model: str
    written: int
    """Vectors that were missing and are there now."""
    refused: int
    """Chunks that the model gives no vector for."""
    freshness: Freshness
    anew: ReembedReport | None = None
    """The report on re-embedding everything, if that was done."""

    def __str__(self) -> str:
        if not self.model:
            return f"nothing is embedded in '{self.kb}' yet"
        looked = self.freshness
        said = []
        if looked.sampled:
            said = [
                f"{self.written:,} missing vector{'' if self.written == 1 else 's'} filled in",
                f"{looked.differing} of {looked.sampled} sampled vectors differ from what {self.model} makes today",
            ]
        return "; ".join([*said, describe_reembedding(self.anew)] if self.anew else said)


class Refresher:
    """Keeps the embeddings of kbs what their model makes of their text."""

    def __init__(
        self, ledger: Ledger, book: SpaceBook, embedders: EmbedderPool, reembedder: Reembedder, access: TenantAccess
    ) -> None:
        self._ledger = ledger
        self._book = book
        self._embedders = embedders
        self._reembedder = reembedder
        self._access = access
        self._filler = SpaceFiller(book, embedders.for_space)

    async def run(
        self,
        tenant: str,
        kb_name: str,
        *,
        sample: int,
        full: bool = False,
        after: int = 0,
        on_progress: OnFill | None = None,
    ) -> RefreshReport:
        """Fill the live Space, compare a sample with what its model makes today, and re-embed all if that differs.

        With `full` all is re-embedded without looking first. A Space up to generation `after` is not gone on with.
        """
        kb = await self._ledger.of(tenant).kb(kb_name)
        if kb is None:
            raise unknown_kb(kb_name, tenant)
        if kb.space is None:
            return RefreshReport(kb_name, "nothing embedded", "", 0, 0, Freshness())
        filled, looked = FillResult(), Freshness()
        # An earlier run of the same request may have come as far as the switch.
        full = full and not 0 < after < kb.space.generation
        if not full:
            await self._filler.fill(tenant, kb, kb.space, filled, on_progress=on_progress)
            await self._book.of(tenant).note_embedded(kb, filled.refused)
            embedder = await self._embedders.for_space(kb.space)
            looked = await freshness(self._book, embedder, tenant, kb, kb.space, sample)
            if looked.is_stale:
                after = max(after, await self._find_stale(embedder, tenant, kb, kb.space, sample))
        outcome: Outcome = "filled" if filled.written else "fresh"
        anew: ReembedReport | None = None
        if full or looked.is_stale:
            # Its own model and dimension: what the settings name may be others by now.
            anew = await self._reembedder.run(
                tenant, kb_name, kb.space, mode="full", after=after, on_progress=on_progress
            )
            outcome = "promoted" if anew.outcome == "promoted" else "not promoted"
        return RefreshReport(kb_name, outcome, kb.space.model, filled.written, len(filled.refused), looked, anew)

    async def _find_stale(self, embedder: Embedder, tenant: str, kb: KnowledgeBase, live: Space, sample: int) -> int:
        """Return the generation of the Space that would be gone on with, if it is stale as well; else 0."""
        building = await find_building(self._book, tenant, kb, live.model, live.dimension)
        if building and (await freshness(self._book, embedder, tenant, kb, building[-1], sample)).is_stale:
            return building[-1].generation
        return 0

    async def do(self, tenant: str, job: Job, tell: Tell, sample: int, reread: Reread | None) -> str:
        """Do a job that `Triggers` has queued; return what it came to, for the notice."""

        def on_progress(done: FillProgress) -> None:
            percent = int(done.done * 99 / done.total) if done.total else 0
            tell(JobProgress(stage="embed", chunks=done.done, chunks_total=done.total, percent=percent))

        await self._access.write(tenant)
        if await self._ledger.of(tenant).kb(job.kb) is None:
            raise NotFoundError(f"knowledge base '{job.kb}' was deleted")
        said = [str(job.facts["because"])]
        if reread:
            count = await reread(tenant, job.kb)
            said += [f"{count} sources are read from their beginning"] if count else []
        try:
            async with self._access.paying(tenant):
                if model := str(job.facts["model"]):
                    # The process that queued it may have had other settings than this worker.
                    named = None if job.facts["model_id"] == self._embedders.default_id else model
                    moved = await self._reembedder.run(tenant, job.kb, named, on_progress=on_progress)
                    said.append(describe_reembedding(moved))
                else:
                    # A job that an older version queued says nothing of these.
                    full, after = bool(job.facts.get("full")), int(job.facts.get("after", 0))
                    report = await self.run(
                        tenant, job.kb, sample=sample, full=full, after=after, on_progress=on_progress
                    )
                    said.append(str(report))
        except ModelUnavailable as error:
            # One kb's model that is not here ends this job, not the worker.
            raise ModelError(str(error), hint=error.hint, remedy=error.remedy) from error
        return "; ".join(said)


def describe_reembedding(report: ReembedReport) -> str:
    """Describe a re-embedding in a few words."""
    what = f"{report.model}, generation {report.generation}"
    match report.outcome:
        case "promoted":
            return f"{report.written} vectors were made anew and {what} is live now"
        case "not promoted":
            name = model_name(report.model)
            return advise(
                f"{what} finds less than what is live and was not made live",
                Remedy(Action.FORCE_REEMBED, model=name, kb=report.kb),
            )
        case _:
            return f"{what} was live already; {report.written} vectors were missing"


async def freshness(
    book: SpaceBook, embedder: Embedder, tenant: str, kb: KnowledgeBase, space: Space, count: int
) -> Freshness:
    """Embed the text of some chunks, drawn by lot, and compare with what is stored for them."""
    drawn = await book.of(tenant).sample(kb, space, count, after=opaque_id())
    cosines: list[float] = []
    for batch in _batches(drawn):
        with let_questions_go_first():
            made = await embedder.embed([embedded.text for embedded in batch], "document")
        if made.model != space.model or made.vectors.shape[1] != space.dimension:
            raise ModelMismatch(
                f"{made.model} answered where the Space is of {space.model}",
                hint="make that model available: until then nobody can say whether its vectors are stale",
            )
        fresh, stored = made.vectors, np.stack([embedded.vector for embedded in batch])
        lengths = np.linalg.norm(fresh, axis=1) * np.linalg.norm(stored, axis=1)
        # What the model gives no vector for today says nothing about the one it gave before.
        told = lengths > 0
        cosines += (np.sum(fresh * stored, axis=1)[told] / lengths[told]).tolist()
    differing = sum(cosine < ALIKE for cosine in cosines)
    return Freshness(len(cosines), differing, min(cosines, default=None))


def _batches(drawn: Sequence[EmbeddedText]) -> Iterator[Sequence[EmbeddedText]]:
    ordered = sorted(drawn, key=lambda embedded: len(embedded.text))
    for start in range(0, len(ordered), BATCH):
        yield ordered[start : start + BATCH]
