"""A kb moves to another model: build a Space beside the live one, compare the two, flip one pointer.

Only the ledger remembers how far it is: running the same again goes on where the last run stopped.
Searches read the live Space all the while, and what is written meanwhile lacks a vector like everything else.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

from ragstone.core.clock import now
from ragstone.core.errors import InputError, ModelError, ModelMismatch, NotFoundError, StoreBusy, unknown_kb
from ragstone.core.ledger import Ledger
from ragstone.core.model_types import model_name
from ragstone.core.protocols import Embedder, SpaceBook
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import SearchResult
from ragstone.core.spaces import GRACE_DAYS, ReembedMode, SpaceRecord
from ragstone.core.types import KnowledgeBase, Space
from ragstone.evaluate.dataset import Dataset, load_queries
from ragstone.evaluate.golden import known_items
from ragstone.evaluate.spaces import SpaceComparison, compare_spaces, label_of, labels
from ragstone.ingest.backfill import FillResult, OnFill, SpaceFiller
from ragstone.models.embedders.pool import EmbedderPool, configured_model
from ragstone.query.context import SearchRequest
from ragstone.query.pipeline import SearchPipeline

MOST_GRACE_DAYS = 3650
ATTEMPTS = 20
FLIP_SECONDS = 45.0
"""Seconds that writers may wait while the last few chunks are embedded."""
Outcome = Literal["promoted", "not promoted", "beside", "filled", "rolled back"]


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """The outcome of building, promoting or restoring a Space."""

    kb: str
    mode: ReembedMode
    outcome: Outcome
    model: str
    generation: int
    replaced: str
    """The model that was live before; empty when there was none or it still is."""
    written: int
    """Vectors that were written now."""
    refused: int
    """Chunks that the model gave no vector for; they are found by word."""
    chunks: int
    """Live chunks of the kb."""
    seconds: float
    comparison: SpaceComparison | None = None


class Reembedder:
    """Moves kbs from model to model."""

    def __init__(self, ledger: Ledger, book: SpaceBook, embedders: EmbedderPool, search: SearchPipeline) -> None:
        self._ledger = ledger
        self._book = book
        self._embedders = embedders
        self._comparer = SpaceComparer(ledger, search)
        self._filler = SpaceFiller(book, embedders.for_space)

    async def run(
        self,
        tenant: str,
        kb_name: str,
        model: str | Space | None = None,
        *,
        mode: ReembedMode | None = None,
        queries: str | Path | None = None,
        force: bool = False,
        grace_days: int = GRACE_DAYS,
        after: int = 0,
        on_progress: OnFill | None = None,
    ) -> ReembedReport:
        """Build or go on building, compare, and promote unless the new Space is worse.

        Without a mode, a kb that has this model in its dimension is only filled where it lacks something.
        A Space in the place of a name stands for its own model and dimension.
        A Space up to generation `after` is not gone on with, and is removed when the new one is filled.
        """
        started = time.monotonic()
        _check_days(grace_days)
        labelled = await asyncio.to_thread(load_queries, queries) if queries else None
        kb = await self._kb(tenant, kb_name)
        wanted, dimension = await self._identify(kb, model)
        is_live = kb.space is not None and (kb.space.model, kb.space.dimension) == (wanted, dimension)
        chosen = mode or ("incremental" if is_live else "full")
        filled = FillResult()
        if chosen == "incremental":
            kb = await self._fill_live(tenant, kb, wanted, dimension, filled, on_progress)
            assert kb.space is not None
            return await self._report(tenant, kb, kb.space, chosen, "filled", filled, started)
        if labelled and kb.space:
            # Before anything is embedded: that may take hours.
            await self._comparer.check(tenant, kb, labelled)
        space = await self._book.of(tenant).open(kb, wanted, dimension, after)
        await self._filler.fill(tenant, kb, space, filled, on_progress=on_progress)
        for earlier in await find_building(self._book, tenant, kb, wanted, dimension):
            if earlier.generation <= after:
                await self._book.of(tenant).drop(earlier)
        compared = await self._comparer.compare(tenant, kb, space, labelled)
        outcome: Outcome = "beside"
        if chosen == "full":
            outcome = "not promoted" if compared and compared.is_worse and not force else "promoted"
        if outcome == "promoted":
            await self._promote(tenant, kb, space, filled, grace_days)
        return await self._report(tenant, kb, space, chosen, outcome, filled, started, compared)

    async def rollback(
        self, tenant: str, kb_name: str, *, grace_days: int = GRACE_DAYS, on_progress: OnFill | None = None
    ) -> ReembedReport:
        """Make the Space live again that was retired last, filled up with what came in since."""
        started = time.monotonic()
        _check_days(grace_days)
        kb = await self._kb(tenant, kb_name)
        retired = [record for record in await self._book.of(tenant).all(kb) if record.retired_at]
        if not retired:
            raise NotFoundError(
                f"knowledge base '{kb_name}' has no Space to go back to",
                hint="what was replaced is kept for its grace period only; reembed --model builds it anew",
            )
        space = max(retired, key=lambda record: (record.retired_at, record.space.generation)).space
        filled = FillResult()
        await self._filler.fill(tenant, kb, space, filled, on_progress=on_progress)
        await self._promote(tenant, kb, space, filled, grace_days)
        return await self._report(tenant, kb, space, "full", "rolled back", filled, started)

    async def spaces(self, tenant: str, kb_name: str) -> list[SpaceRecord]:
        """Return all Spaces of a kb, oldest generation first."""
        return await self._book.of(tenant).all(await self._kb(tenant, kb_name))

    async def clean(self, tenant: str, kb_name: str, *, retired: bool = False, building: bool = False) -> int:
        """Remove Spaces whose grace period is over, or all retired ones, or those being built; how many went."""
        gone = 0
        for record in await self.spaces(tenant, kb_name):
            over = record.keep_until is not None and record.keep_until <= now()
            state = record.space.state
            if (state == "retired" and (retired or over)) or (state == "building" and building):
                gone += await self._book.of(tenant).drop(record.space)
        return gone

    async def _identify(self, kb: KnowledgeBase, model: str | Space | None) -> tuple[str, int]:
        if model is None:
            return await identify_default(self._embedders, kb)
        if not isinstance(model, Space):
            embedder = await self._embedders.get(model_name(model))
            return await identify_model(embedder, configured_model(embedder).id)
        try:
            embedder = await self._embedders.for_space(model)
        except ModelMismatch:
            embedder = await self._embedders.get(model_name(model.model))  # another revision is installed
        return await identify_model(embedder, model.model)

    async def _kb(self, tenant: str, name: str) -> KnowledgeBase:
        found = await self._ledger.of(tenant).kb(name)
        if found is None:
            raise unknown_kb(name, tenant)
        return found

    async def _fill_live(
        self, tenant: str, kb: KnowledgeBase, model: str, dimension: int, filled: FillResult, on_progress: OnFill | None
    ) -> KnowledgeBase:
        async with self._ledger.transaction(tenant) as tx:
            kb = await tx.open_space(kb, model, dimension)
        assert kb.space is not None
        await self._filler.fill(tenant, kb, kb.space, filled, on_progress=on_progress)
        await self._book.of(tenant).note_embedded(kb, filled.refused)
        return kb

    async def _promote(self, tenant: str, kb: KnowledgeBase, space: Space, filled: FillResult, grace_days: int) -> None:
        keep_until = now() + timedelta(days=grace_days)
        try:
            for _ in range(ATTEMPTS):
                async with asyncio.timeout(FLIP_SECONDS):
                    if await self._book.of(tenant).promote(
                        kb,
                        space,
                        keep_until=keep_until,
                        refused=filled.refused,
                        complete=lambda few: self._filler.complete(tenant, space, few, filled),
                    ):
                        break
                await self._filler.fill(tenant, kb, space, filled)
            else:
                raise StoreBusy(
                    f"documents come into '{kb.name}' faster than {space.model} embeds them",
                    hint="pause its sources and run the same again: it goes on where it was",
                )
        except TimeoutError as error:
            raise ModelError(
                f"{space.model} took more than {FLIP_SECONDS:.0f} s for the last few chunks of '{kb.name}'",
                hint="nothing was changed; run the same again: it goes on where it was",
            ) from error
        # What was under way at the flip was embedded for the Space before.
        await self._filler.catch_up(tenant, await self._kb(tenant, kb.name))

    async def _report(
        self,
        tenant: str,
        kb: KnowledgeBase,
        space: Space,
        mode: ReembedMode,
        outcome: Outcome,
        filled: FillResult,
        started: float,
        comparison: SpaceComparison | None = None,
    ) -> ReembedReport:
        moved = outcome in ("promoted", "rolled back")
        return ReembedReport(
            kb=kb.name,
            mode=mode,
            outcome=outcome,
            model=space.model,
            generation=space.generation,
            replaced=kb.space.model if moved and kb.space else "",
            written=filled.written,
            refused=len(filled.refused),
            chunks=(await self._book.of(tenant).coverage(kb, space))[1],
            seconds=round(time.monotonic() - started, 3),
            comparison=comparison,
        )


async def identify_default(embedders: EmbedderPool, kb: KnowledgeBase) -> tuple[str, int]:
    """Return the id and dimension of the configured model, or of the fallback that a kb is of while that answers."""
    return await identify_model(embedders.default, embedders.default_id, *([kb.space.model] if kb.space else []))


async def identify_model(embedder: Embedder, *wanted: str) -> tuple[str, int]:
    """Return the id and dimension of what really answers, before anything is written for it; only of those wanted."""
    made = await embedder.embed(["What does this model make of a sentence?"], "document")
    if model_name(made.model) not in map(model_name, wanted):
        raise ModelMismatch(
            f"{made.model} answered instead of {wanted[0]}",
            hint="make that model available and run the same again: nothing was changed",
        )
    return made.model, made.vectors.shape[1]


async def find_building(book: SpaceBook, tenant: str, kb: KnowledgeBase, model: str, dimension: int) -> list[Space]:
    """Return the Spaces of a model that are being built or were not made live, oldest generation first."""
    wanted = model, dimension, "building"
    outline = await book.of(tenant).outline(kb)
    return [space for space, _ in outline if (space.model, space.dimension, space.state) == wanted]


def _check_days(grace_days: int) -> None:
    if not 0 <= grace_days <= MOST_GRACE_DAYS:
        raise InputError(f"grace_days is {grace_days}; it must be from 0 to {MOST_GRACE_DAYS}")


SAMPLE = 200
"""Documents that queries are made of."""
PAGE = 1000


@dataclass(frozen=True, slots=True)
class SpaceRetriever:
    """One Space of a kb, searched by meaning alone: what is by word does not change with the model."""

    search: SearchPipeline
    tenant: str
    kb: KnowledgeBase
    known: frozenset[str]
    """The names of documents in the judgements: their id, their dataset's id for them, or their address."""

    async def retrieve(self, query: str, k: int) -> SearchResult:
        """Hits labelled the way the judgements do."""
        request = SearchRequest(query, k, mode="thorough", arms="dense", fusion="zscore", candidates=k)
        try:
            found = await self.search.search(self.tenant, self.kb, request)
        except InputError:
            # The model can make nothing of this query, which counts against it; the others go on.
            return SearchResult(query, query, "thorough", (), (), (), 0.0)
        hits = [
            replace(hit, metadata={"dataset_id": label_of([hit.document_id, given, hit.uri], self.known)})
            for hit in found.hits
            for given in [str(hit.metadata.get("dataset_id", hit.uri))]
        ]
        return replace(found, hits=tuple(hits))


class SpaceComparer:
    """Compares a Space with the live one."""

    def __init__(self, ledger: Ledger, search: SearchPipeline) -> None:
        self._ledger = ledger
        self._search = search

    async def compare(
        self, tenant: str, kb: KnowledgeBase, space: Space, labelled: Dataset | None
    ) -> SpaceComparison | None:
        """Compare by labelled queries, else by some made of the kb's own text; None without either."""
        if kb.space is None:
            return None
        dataset = labelled or await self._generate_queries(tenant, kb)
        if dataset is None:
            return None
        known = labels(dataset)
        old = SpaceRetriever(self._search, tenant, kb, known)
        new = SpaceRetriever(self._search, tenant, replace(kb, space=space), known)
        return await compare_spaces(old, new, dataset)

    async def check(self, tenant: str, kb: KnowledgeBase, labelled: Dataset) -> None:
        """Raise `InputError` when no judgement names a document of the kb: both Spaces would find nothing."""
        known, after = labels(labelled), ""
        while page := await self._ledger.of(tenant).documents(kb, after=after, limit=PAGE):
            if any({document.id, document.uri, str(document.metadata.get("dataset_id"))} & known for document in page):
                return
            after = page[-1].id
        raise InputError(
            f"no label of {labelled.name} names a document of knowledge base '{kb.name}', "
            f"the first being {next(iter(sorted(known)))!r:.80}",
            hint="a label is the id or the uri of a document",
            remedy=Remedy(Action.LIST_DOCUMENTS),
        )

    async def _generate_queries(self, tenant: str, kb: KnowledgeBase) -> Dataset | None:
        # Ids are hashes, so the first of them are as good a sample as any.
        sample = []
        for document in await self._ledger.of(tenant).documents(kb, limit=SAMPLE):
            try:
                sample.append((document.id, document.title, await self._ledger.of(tenant).text(document.id)))
            except NotFoundError:
                continue  # deleted meanwhile
        return known_items(sample)
