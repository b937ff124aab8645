"""The engine: everything Ragstone does, as async methods over one set of stores and models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ragstone.core.answers import Answer
from ragstone.core.query_settings import Fusion
from ragstone.core.settings import Settings
from ragstone.core.tenants import TenantBook
from ragstone.core.types import (
    Explanation,
    Failure,
    IngestReport,
    Item,
    Mode,
    SearchResult,
)
from ragstone.library import Library
from ragstone.parts import Parts
from ragstone.query.request import Arm, search_request

if TYPE_CHECKING:
    # Only some methods need these: they are imported there, and a search starts the sooner.
    from ragstone.ingest.arrivals import Listing
    from ragstone.ingest.tally import OnProgress
    from ragstone.intake import Intake
    from ragstone.moves.mover import Mover


MOST_PIPELINES = 256


class Engine(Library):
    """Takes in, searches, answers and explains. Use it as `async with open_engine(settings) as engine`.

    `tenant` and `kb` default to those of the settings in every method.
    """

    def __init__(self, settings: Settings, parts: Parts) -> None:
        super().__init__(settings, parts)
        self._pipeline = lru_cache(MOST_PIPELINES)(lambda one: parts.search_pipeline(one, settings.reranking))
        """What searches, by settings: tenants may have their own."""

    async def ingest(
        self,
        *paths: str | Path,
        tenant: str | None = None,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Take in files and folders; what has not changed since is left alone, what is gone from a folder goes."""
        from ragstone.ingest.sources.listing import found_at

        items, listings = await found_at(paths, self.settings.limits)
        return await self.ingest_items(
            items, tenant=tenant, kb=kb, on_progress=on_progress, listings=listings
        )

    async def ingest_items(
        self,
        items: Iterable[Item | Failure],
        *,
        tenant: str | None = None,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
        listings: Sequence[Listing] = (),
    ) -> IngestReport:
        """Take in items of any source, here and now; documents that a listing no longer has are removed."""
        pipeline = self._parts.pipeline(self._model)
        return await pipeline.run(self._tenant(tenant), self._name(kb), items, on_progress, listings=listings)

    async def ingest_urls(
        self,
        *urls: str,
        tenant: str | None = None,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Take in web pages, through the guarded fetcher."""
        await self._owner(tenant)
        items = await self.intake.fetch_pages(urls)
        return await self.ingest_items(items, tenant=tenant, kb=kb, on_progress=on_progress)

    async def preview(
        self, *paths: str | Path, tenant: str | None = None, kb: str | None = None
    ) -> IngestReport:
        """What `ingest` would do, without a model and without writing anything."""
        from ragstone.ingest.preview import preview
        from ragstone.ingest.sources.listing import found_at

        items, listings = await found_at(paths, self.settings.limits)
        owner = await self._owner(tenant)
        scope = await self._parts.ledger.kb(owner, self._name(kb))
        return await preview(
            self._parts.ledger,
            self._parts.preparer(self._model),
            owner,
            scope,
            items,
            listings,
            self.settings.limits,
        )

    @property
    def tenants(self) -> TenantBook:
        """Who there is, what they may use and what they have used."""
        return self._parts.tenants

    async def is_on(self, flag: str, *, tenant: str | None = None) -> bool:
        """Whether a feature is on for a tenant, as `flags.NAME` of its settings says."""
        return await self._parts.gate.is_on(self._tenant(tenant), flag)

    @property
    def moves(self) -> Mover:
        """Archives out and in, and moves to other stores."""
        return self._parts.mover()

    @property
    def intake(self) -> Intake:
        """Uploads, sources, jobs and workers: what is taken in now and worked on later."""
        return self._parts.intake(self._model)

    async def search(
        self,
        query: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        arms: Arm | None = None,
        fusion: Fusion | None = None,
        min_score: float | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> SearchResult:
        """The passages that matter for a query, best first; `where` is a filter in its JSON form."""
        owner, gate = self._tenant(tenant), self._parts.gate
        settings = await gate.settings_for(owner)
        request = search_request(settings, query, k, mode, where, arms, fusion, min_score)
        await gate.query(owner)
        scope = await self._kb(tenant, kb)
        async with gate.paying(owner):
            return await self._pipeline(settings.retrieval).search(owner, scope, request)

    async def ask(
        self,
        question: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Answer:
        """An answer in which every sentence carries the passage it stands on."""
        passages = self.settings.answer.passages if k is None else k
        found = await self.search(question, k=passages, mode=mode, where=where, tenant=tenant, kb=kb)
        async with self._parts.gate.paying(self._tenant(tenant)):
            return await self._parts.answerer().answer(found.query, found.hits, degraded=found.degraded)

    async def explain(
        self,
        query: str,
        document_id: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Explanation:
        """Why a document is in the result of a query, or at which stage it was lost."""
        from ragstone.query.explain import explain

        owner, gate = self._tenant(tenant), self._parts.gate
        settings = await gate.settings_for(owner)
        request = search_request(settings, query, k, mode, where)
        await gate.query(owner)
        scope, pipeline = await self._kb(tenant, kb), self._pipeline(settings.retrieval)
        async with gate.paying(owner):
            return await explain(self._parts.ledger, pipeline, owner, scope, request, document_id)

    async def warm(self) -> None:
        """Load the embedding model now rather than with the first query."""
        await self._parts.embedder.embed(["warm"], "query")

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
