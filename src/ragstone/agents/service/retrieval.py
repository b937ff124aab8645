"""Retrieval for a message: documents and the shop's data side by side, then the web where the rules ask for it.

Each source has its own time. One that fails or is late is named in `degraded`, and the others answer without it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from ragstone.agents.service.analysis import MessageAnalysis, analyze_message
from ragstone.agents.service.enrichment import NO_FINDINGS, InternetFindings, InternetSearch, choose_product
from ragstone.agents.service.rows import CATALOG, SERVICES, names_hit, product_hit, service_hit, slots_hit
from ragstone.agents.service.settings import AgentConfiguration
from ragstone.core.clock import now
from ragstone.core.errors import ModelError, NotFoundError, RemoteError, SearchFailed, SourceError, StoreError
from ragstone.core.search import Exchange, SearchResult, SourceKind, Stage
from ragstone.core.shop import Product, Service, Slot
from ragstone.core.types import Hit
from ragstone.engine.workspace import Workspace
from ragstone.language.analyzer import analyze
from ragstone.language.follow_ups import resolve_follow_up
from ragstone.query.routing.federation import rank_results

logger = logging.getLogger(__name__)
T = TypeVar("T")
SECONDS: Mapping[SourceKind, float] = {"documents": 2.0, "database": 1.0, "internet": 4.0}
"""The time of each source."""
MOST_SERVICES = 3
"""Services whose free times are looked up for one message."""
FAILED: Mapping[SourceKind, str] = {
    "documents": "cannot search the knowledge base",
    "database": "Database unavailable",
    "internet": "Internet search failed",
}
NOTES: Mapping[SourceKind, str] = {"documents": "documents", "database": "database", "internet": "web"}
"""The beginning of what is noted about a source, as alerts and analytics read it."""
UNAVAILABLE = (StoreError, RemoteError, ModelError, SearchFailed, SourceError, TimeoutError, OSError)
"""Errors of a source that the others make up for; anything else ends the reply."""


@dataclass(frozen=True, slots=True)
class DatabaseContext:
    """Rows of the shop that a message is about, as they are now."""

    products: tuple[Product, ...] = ()
    services: tuple[Service, ...] = ()
    slots: Mapping[str, tuple[Slot, ...]] = field(default_factory=dict)
    """Free times by service; a service that nobody asked times of is not in it."""
    named: bool = False
    """True where the message names these products or services, rather than something that they have in common."""
    names: tuple[str, ...] = ()
    """The names of all products or services, where all are asked for."""
    age_seconds: float = 0.0
    """The time since products and services were read; free times are always those of now."""


NO_ROWS = DatabaseContext()


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The findings of each source for a message, and what could not be asked."""

    analysis: MessageAnalysis
    documents: tuple[Hit, ...] = ()
    database: DatabaseContext = NO_ROWS
    rows: tuple[Hit, ...] = ()
    """The rows as passages."""
    internet: InternetFindings = NO_FINDINGS
    trace: tuple[Stage, ...] = ()
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0

    @property
    def hits(self) -> tuple[Hit, ...]:
        """All passages by relevance and trust in their source."""
        return rank_results((*self.rows, *self.documents, *self.internet.hits), self.analysis.message)

    def as_search(self) -> SearchResult:
        """Return the retrieval as it is logged."""
        analysis = self.analysis
        return SearchResult(
            query=analysis.message,
            rewritten_query=analysis.message,
            mode="balanced",
            hits=self.documents,
            trace=self.trace,
            degraded=self.degraded,
            took_ms=self.took_ms,
            route="retrieve" if analysis.sources else "none",
            web=self.internet.results,
            records=self.rows,
            analysis=analysis.as_query_analysis(),
        )


@dataclass(slots=True)
class _Record:
    """Collects the stages of a retrieval and what went wrong."""

    trace: list[Stage] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)

    async def ask(self, source: SourceKind, seconds: float, work: Callable[[], Awaitable[T]], nothing: T) -> T:
        """Return what a source has within its time, or nothing and a note."""
        started, problem, found = time.perf_counter(), "", nothing
        try:
            async with asyncio.timeout(seconds):
                found = await work()
        except UNAVAILABLE as error:
            problem = str(error) or f"no answer within {seconds:g} s"
        self.note(source, problem)
        ms = round((time.perf_counter() - started) * 1000, 3)
        if source != "documents":
            self.trace.append(Stage("web" if source == "internet" else source, ms, 1, 0 if problem else 1))
        return found

    def note(self, source: SourceKind, problem: str) -> None:
        if problem:
            logger.warning("%s: %s", FAILED[source], problem)
            self.degraded.append(f"{NOTES[source]}: {problem}")


class ServiceRetriever:
    """Asks the sources that the configuration allows and the message needs."""

    def __init__(
        self,
        workspace: Workspace,
        configuration: AgentConfiguration,
        *,
        kb: str | None = None,
        seconds: Mapping[SourceKind, float] = SECONDS,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._workspace = workspace
        self._configuration = configuration
        self._kb = kb
        self._seconds = seconds
        self._clock = clock
        self._internet = InternetSearch(workspace.dialogue)

    async def retrieve(
        self, query: str, conversation_context: Sequence[Exchange] = (), max_results: int = 5
    ) -> RetrievalResult:
        """Return what the sources have for a message in the light of earlier turns, at most some passages of each."""
        started = time.perf_counter()
        most = self._workspace.settings.limits.query_chars
        meant = resolve_follow_up(query, conversation_context, most).search if conversation_context else query
        analysis = analyze_message(meant, self._configuration, self._clock())
        record = _Record()
        found, context = await asyncio.gather(
            self._ask_documents(analysis, record, max_results), self._ask_database(analysis, record)
        )
        context = limit_context(context, min(max_results, self._configuration.max_database_results))
        internet = await self._ask_internet(analysis, context, record)
        return RetrievalResult(
            _complete(analysis, context, record),
            documents=found.hits if found else (),
            database=context,
            rows=(*list_rows(context, analysis), *(found.records if found else ())),
            internet=internet,
            trace=(*(found.trace if found else ()), *record.trace),
            degraded=(*(found.degraded if found else ()), *record.degraded),
            took_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def retrieve_from_documents(self, query: str, max_results: int = 3) -> tuple[Hit, ...]:
        """Return the passages of documents that matter for a query, best first."""
        found = await self._find(query, max_results)
        return found.hits if found else ()

    async def _find(self, query: str, k: int) -> SearchResult | None:
        weight = self._configuration.dense_weight
        try:
            return await self._workspace.dialogue.find(query, k=k, dense_weight=weight, kb=self._kb)
        except NotFoundError:
            if self._kb is not None:
                raise
            return None  # a shop without documents

    async def _ask_documents(self, analysis: MessageAnalysis, record: _Record, most: int) -> SearchResult | None:
        if "documents" not in analysis.sources:
            return None
        k = min(most, self._configuration.max_document_results)
        seconds = self._seconds["documents"]
        return await record.ask("documents", seconds, lambda: self._find(analysis.message, k), None)

    async def retrieve_from_database(self, query: str) -> DatabaseContext:
        """Return the products, services and free times of the shop that a query is about."""
        return await self._look_up(analyze_message(query, self._configuration, self._clock()))

    async def _ask_database(self, analysis: MessageAnalysis, record: _Record) -> DatabaseContext:
        if "database" not in analysis.sources:
            return NO_ROWS
        return await record.ask("database", self._seconds["database"], lambda: self._look_up(analysis), NO_ROWS)

    async def _look_up(self, analysis: MessageAnalysis) -> DatabaseContext:
        shop, most = self._workspace.shop, self._configuration.max_database_results
        if analysis.intent == "services":
            offered = await shop.list_services()
            return DatabaseContext(services=tuple(offered[:most]), names=tuple(one.name for one in offered))
        if analysis.intent == "products":
            sold = await shop.list_products()
            return DatabaseContext(products=tuple(sold[:most]), names=tuple(one.name for one in sold))
        found, near = await asyncio.gather(
            shop.get_product_context(analysis.message, most), shop.get_service_context(analysis.message, most)
        )
        context = choose_rows([one.product for one in found], [one.service for one in near], analysis)
        ages = [one.age_seconds for one in found] + [one.age_seconds for one in near]
        context = replace(context, age_seconds=max(ages, default=0.0))
        if not _asks_for_times(analysis, context):
            return context
        services = (context.services or await self._list_all(analysis))[:MOST_SERVICES]
        slots = await asyncio.gather(
            *(shop.get_appointment_availability(one.id, analysis.days_in(one.timezone)) for one in services)
        )
        times = {one.id: tuple(free) for one, free in zip(services, slots, strict=True)}
        return replace(context, products=(), services=services, slots=times)

    async def _list_all(self, analysis: MessageAnalysis) -> tuple[Service, ...]:
        """Return all services where a message names none in particular."""
        return () if analysis.entities else tuple(await self._workspace.shop.list_services())

    async def retrieve_from_internet(self, query: str, product: Product | None = None) -> InternetFindings:
        """Return what the web says of a product; the query stays here, and without a product nothing is asked."""
        if product is None or not self._configuration.enable_internet_enrichment:
            return NO_FINDINGS
        return await self._internet.find_pages(product, self._configuration.max_internet_results)

    async def _ask_internet(
        self, analysis: MessageAnalysis, context: DatabaseContext, record: _Record
    ) -> InternetFindings:
        product = choose_product(context.products, analysis, self._configuration)
        if product is None:
            return NO_FINDINGS
        found = await record.ask(
            "internet",
            self._seconds["internet"],
            lambda: self.retrieve_from_internet(analysis.message, product),
            NO_FINDINGS,
        )
        record.note("internet", found.problem)
        return replace(found, details=await self._internet.extract_product_details(found.results))


def _complete(analysis: MessageAnalysis, context: DatabaseContext, record: _Record) -> MessageAnalysis:
    """Return the analysis with what the shop's data told about the message, and all sources that were asked."""
    kind, intent = analysis.type, analysis.intent
    if context.slots:
        kind, intent = "service", "availability"
    elif kind == "general" and context.named:
        kind = "product" if context.products else "service"
    is_asked = any(stage.stage == "web" for stage in record.trace)
    sources = (*analysis.sources, "internet") if is_asked else analysis.sources
    return replace(analysis, type=kind, intent=intent, sources=sources)


def _asks_for_times(analysis: MessageAnalysis, context: DatabaseContext) -> bool:
    """Return whether a message asks when something is free, if only by naming a service and a day."""
    if analysis.intent in ("question", "overview"):
        return bool(analysis.dates and context.services and not context.products)
    return analysis.intent == "availability"


def choose_rows(products: Sequence[Product], services: Sequence[Service], analysis: MessageAnalysis) -> DatabaseContext:
    """Return the rows that a message names, or else those that it has a word in common with."""
    said = analysis.terms
    named = [one for one in products if is_named(one.name, said)]
    treated = [one for one in services if is_named(one.name, said)]
    if named or treated:
        return DatabaseContext(tuple(named), tuple(treated), named=True)
    if analysis.intent == "recommendation":
        there = [one for one in products if one.stock != 0] or products
        return DatabaseContext(tuple(there), tuple(services) if analysis.type == "service" else ())
    near = [one for one in products if said & frozenset(analyze(f"{one.name} {one.category} {one.brand}"))]
    treated = [one for one in services if said & frozenset(analyze(one.name))]
    return DatabaseContext(tuple(near) if analysis.type != "service" else (), tuple(treated))


def is_named(name: str, terms: frozenset[str]) -> bool:
    """Return whether terms have all words of a name."""
    own = frozenset(analyze(name))
    return bool(own) and own <= terms


def limit_context(context: DatabaseContext, most: int) -> DatabaseContext:
    """Return at most some rows of each kind."""
    return replace(context, products=context.products[:most], services=context.services[:most])


def list_rows(context: DatabaseContext, analysis: MessageAnalysis) -> list[Hit]:
    """Return the rows as passages: free times first where they are asked for."""
    times = [
        slots_hit(service, context.slots[service.id], rank, analysis.days_in(service.timezone))
        for rank, service in enumerate(context.services, start=1)
        if service.id in context.slots
    ]
    kind, title = ("service", SERVICES) if context.services else ("product", CATALOG)
    return [
        *([names_hit(kind, title, context.names)] if context.names else []),
        *times,
        *(product_hit(product, rank, context.age_seconds) for rank, product in enumerate(context.products, start=1)),
        *(service_hit(service, rank, context.age_seconds) for rank, service in enumerate(context.services, start=1)),
    ]
