"""The engine: everything Ragstone does, as async methods over one set of stores and models."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, get_args

from ragstone.core.answers import Answer
from ragstone.core.errors import ModelMismatch, ModelUnavailable, NotFoundError, SettingsError
from ragstone.core.filters import parse_filter
from ragstone.core.protocols import LLM, Embedder, Ledger, LexicalIndex, Reranker, VectorIndex
from ragstone.core.settings import Fusion, Settings
from ragstone.core.types import (
    Document,
    Explanation,
    Failure,
    IngestReport,
    Item,
    KnowledgeBase,
    LiveChunk,
    Mode,
    SearchResult,
    Stats,
)
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.request import Arm, SearchRequest, checked_choice, checked_count, checked_query

if TYPE_CHECKING:
    # Only some methods need these: they are imported there, and a search starts the sooner.
    from ragstone.answer import Answerer
    from ragstone.ingest.arrivals import Listing
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.prepare import Preparer
    from ragstone.ingest.tally import OnProgress
    from ragstone.intake import Intake


Closing = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is made of; `ragstone.wiring` puts it together."""

    ledger: Ledger
    vectors: VectorIndex
    lexical: LexicalIndex
    embedder: Embedder
    embedder_named: Callable[[str], Embedder]
    """Builds the embedder of another model by name: for kbs that were made with it."""
    reranker: Reranker | None
    llm: LLM | None
    preparer: Callable[[str], Preparer]
    """Makes, for a model, what cuts documents; like the next ones only when it is needed: a search needs none."""
    pipeline: Callable[[str], IngestPipeline]
    intake: Callable[[str], Intake]
    answerer: Callable[[], Answerer]
    closing: list[Closing]


class Engine:
    """Ingests, searches, answers and explains. Use it as `async with open_engine(settings) as engine`.

    `tenant` and `kb` default to those of the settings in every method.
    """

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.settings = settings
        self._parts = parts
        self._others: dict[str, Embedder] = {}
        self._building = asyncio.Lock()
        self._pipeline = SearchPipeline(
            parts.ledger,
            parts.vectors,
            parts.lexical,
            self._embedder_for,
            parts.reranker,
            settings.retrieval,
            settings.reranking,
        )

    async def ingest(
        self,
        *paths: str | Path,
        tenant: str | None = None,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Take in files and folders; what has not changed since is left alone, what is gone from a folder goes."""
        items, listings = await self._found(paths)
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
        items = await self.intake.fetch_pages(urls)
        return await self.ingest_items(items, tenant=tenant, kb=kb, on_progress=on_progress)

    async def preview(
        self, *paths: str | Path, tenant: str | None = None, kb: str | None = None
    ) -> IngestReport:
        """What `ingest` would do, without a model and without writing anything."""
        from ragstone.ingest.preview import preview

        items, listings = await self._found(paths)
        owner = self._tenant(tenant)
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
        request = self._request(query, k, mode, where, arms, fusion, min_score)
        scope = await self._kb(tenant, kb)
        return await self._pipeline.search(self._tenant(tenant), scope, request)

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

        request = self._request(query, k, mode, where, None, None, None)
        scope = await self._kb(tenant, kb)
        return await explain(
            self._parts.ledger, self._pipeline, self._tenant(tenant), scope, request, document_id
        )

    async def documents(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        after: str = "",
        limit: int = 100,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> list[Document]:
        """A page of documents in order of id, starting behind `after`."""
        checked_count("limit", limit, most=10_000)
        scope = await self._kb(tenant, kb)
        return await self._parts.ledger.documents(
            self._tenant(tenant), scope, where=parse_filter(where), after=after, limit=limit
        )

    async def document(self, document_id: str, *, tenant: str | None = None) -> Document:
        """One document, or `NotFoundError`."""
        found = await self._parts.ledger.document(self._tenant(tenant), document_id)
        if found is None:
            raise NotFoundError(f"no document {document_id}", hint="list them with: ragstone documents")
        return found

    async def text(self, document_id: str, *, tenant: str | None = None) -> str:
        """A document's text, that citation offsets point into."""
        return await self._parts.ledger.text(self._tenant(tenant), document_id)

    async def chunks(self, document_id: str, *, tenant: str | None = None) -> list[LiveChunk]:
        """How a document was cut, in order."""
        return await self._parts.ledger.document_chunks(self._tenant(tenant), document_id)

    async def delete(self, document_id: str, *, tenant: str | None = None) -> bool:
        """Remove a document with everything derived from it; False when there is none."""
        owner = self._tenant(tenant)
        if await self._parts.ledger.status(owner, document_id) is None:
            return False
        async with self._parts.ledger.transaction(owner) as tx:
            return await tx.delete(document_id)

    async def delete_kb(self, kb: str, *, tenant: str | None = None) -> int:
        """Remove a kb; the number of documents that went with it."""
        owner = self._tenant(tenant)
        if await self._parts.ledger.kb(owner, kb) is None:
            return 0
        async with self._parts.ledger.transaction(owner) as tx:
            return await tx.delete_kb(kb)

    async def kbs(self, *, tenant: str | None = None) -> Sequence[KnowledgeBase]:
        """All kbs of a tenant."""
        return await self._parts.ledger.kbs(self._tenant(tenant))

    async def stats(self, *, tenant: str | None = None, kb: str | None = None) -> Stats:
        """Counts of live content."""
        scope = await self._kb(tenant, kb)
        return await self._parts.ledger.stats(self._tenant(tenant), scope)

    async def warm(self) -> None:
        """Load the embedding model now rather than with the first query."""
        await self._parts.embedder.embed(["warm"], "query")

    async def close(self) -> None:
        """Let go of models, children and files."""
        async with AsyncExitStack() as stack:  # one that fails to close keeps none of the others open
            for close in reversed([*(other.close for other in self._others.values()), *self._parts.closing]):
                stack.push_async_callback(close)

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _found(self, paths: Sequence[str | Path]) -> tuple[Iterator[Item | Failure], list[Listing]]:
        """What there is at these paths, and what is listed under those that are folders."""
        from ragstone.ingest.sources.files import read_files
        from ragstone.ingest.sources.listing import folder_listings

        limits = self.settings.limits
        named = [Path(path) for path in paths]
        items = read_files(named, limits.file_mb * 1024 * 1024, limits)
        return items, await asyncio.to_thread(folder_listings, named, limits)

    def _request(
        self,
        query: str,
        k: int | None,
        mode: Mode | None,
        where: Mapping[str, Any] | None,
        arms: Arm | None,
        fusion: Fusion | None,
        min_score: float | None,
    ) -> SearchRequest:
        retrieval = self.settings.retrieval
        return SearchRequest(
            query=checked_query(query, self.settings.limits.query_chars),
            k=checked_count("k", retrieval.k if k is None else k),
            mode=checked_choice("mode", mode or retrieval.mode, get_args(Mode)),
            arms=checked_choice("arms", arms or retrieval.arms, get_args(Arm)),
            fusion=checked_choice("fusion", fusion or retrieval.fusion, get_args(Fusion)),
            candidates=retrieval.candidates,
            min_score=retrieval.min_score if min_score is None else min_score,
            where=parse_filter(where),
        )

    def _tenant(self, tenant: str | None) -> str:
        # Only None means the default: an empty name is a mistake that must not reach somebody's data.
        return self.settings.tenant if tenant is None else tenant

    def _name(self, kb: str | None) -> str:
        return self.settings.kb if kb is None else kb

    async def _kb(self, tenant: str | None, kb: str | None) -> KnowledgeBase:
        name = self._name(kb)
        found = await self._parts.ledger.kb(self._tenant(tenant), name)
        if found is None:
            raise NotFoundError(
                f"there is no knowledge base '{name}' yet", hint="make it with: ragstone ingest PATH"
            )
        return found

    @cached_property
    def _model(self) -> str:
        """The configured model, also after its fallback has taken its place."""
        return self._parts.embedder.model.id

    async def _embedder_for(self, model: str) -> Embedder:
        """The embedder of a Space's model: the configured one, or another that can be had by name."""
        own = self._parts.embedder
        if model in (self._model, own.model.id):
            return own
        async with self._building:
            if model not in self._others:
                self._others[model] = await self._build_other(model)
        return self._others[model]

    async def _build_other(self, model: str) -> Embedder:
        try:
            embedder = await asyncio.to_thread(self._parts.embedder_named, model.split("@")[0])
        except SettingsError as error:
            raise ModelUnavailable(f"this index was built with {model}: {error}", hint=error.hint) from error
        if embedder.model.id != model:
            await embedder.close()
            raise ModelMismatch(
                f"this index was built with {model}; {embedder.model.id} is what is installed",
                hint="install the weights it was built with, or ingest into another --kb",
            )
        return embedder
