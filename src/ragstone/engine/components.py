"""The components of an engine; adapters are picked here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from ragstone.answer.cache import AnswerCache
from ragstone.core.clock import now
from ragstone.core.protocols import LLM, Embedder, Entailer, Reranker, Source
from ragstone.engine.access import TenantAccess, TenantScope
from ragstone.engine.monitoring.metrics import Metrics, QueueMeter
from ragstone.engine.shop.lookups import LookupCache
from ragstone.engine.turns import Turns
from ragstone.models import build_embedder, build_llm, build_llm_reranker, build_reader, build_reranker, tokenizer_of
from ragstone.models.embedders.pool import EmbedderPool
from ragstone.query.cache import SearchCache
from ragstone.query.compress import CompressStage
from ragstone.query.context import FirstReads
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.routing.federation import FederatedSearch
from ragstone.query.transform import build_transformer
from ragstone.settings.load import read_profile
from ragstone.settings.retrieval import RerankingStage, RetrievalSettings
from ragstone.settings.tree import EmbeddingSettings, Settings
from ragstone.stores.factory import open_stores

if TYPE_CHECKING:
    # Only some calls need these: they are imported when they are built, and a search starts the sooner.
    from ragstone.answer.ask import Answerer
    from ragstone.answer.reader import Reader
    from ragstone.answer.research import Researcher
    from ragstone.answer.verify import ClaimVerifier
    from ragstone.core.activity import SearchReport
    from ragstone.core.jobs import Job, JobProgress, TaskResult
    from ragstone.engine.embeddings.reembed import Reembedder
    from ragstone.engine.embeddings.refresh import Refresher
    from ragstone.engine.embeddings.triggers import Triggers
    from ragstone.engine.erasure import Eraser
    from ragstone.engine.monitoring.alerts import AlertWatch
    from ragstone.engine.monitoring.health import ReadinessMonitor
    from ragstone.engine.tasks import TaskRun
    from ragstone.ingest.jobs.maintenance import Maintenance
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.prepare import Preparer
    from ragstone.ingest.sources.config import SourceContext
    from ragstone.ingest.sources.database.records import RecordFinder
    from ragstone.ingest.sources.database.shop import ShopDatabase
    from ragstone.ingest.verify import Verifier
    from ragstone.stores.activity.search_log import SearchLog
    from ragstone.stores.control.alerts import SqlAlertBook
    from ragstone.stores.corpus.upkeep import FileUpkeep
    from ragstone.websearch.searcher import WebSearcher

Close = Callable[[], Awaitable[None]]
MOST_PIPELINES = 256
SEARCH_WAIT, ANSWER_WAIT = 30.0, 60.0
"""Seconds that a search and an answer wait for their turn. The deadline of a search begins with its turn."""


class Components:
    """The stores and models of an engine, and what is built on them when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        """Check the settings; nothing is loaded, started or written yet."""
        self.settings = settings
        self.stores = open_stores(settings, secret_keys)
        self.ledger = self.stores.ledger
        self.embedder = build_embedder(settings.embedding)
        self.reranker = _reranker(settings, settings.reranking)
        then = settings.reranking.then
        self.second_reranker = _reranker(settings, then) if then.kind != "none" else None
        self.llm: LLM | None = build_llm(settings.llm)
        self.embedders = EmbedderPool(
            self.embedder, lambda name, dimension: build_embedder(_settings_of(settings, name, dimension))
        )
        models = [model.close for model in (self.reranker, self.second_reranker, self.llm) if model]
        self._closing: list[Close] = [
            self.stores.audit.close,
            self.stores.close,
            self.embedder.close,
            self.embedders.close,
            *models,
        ]
        self.more_tasks: dict[str, TaskRun] = {}
        """Tasks that are done by what stands above the engine, such as agents."""
        self.metrics = Metrics()
        self.access = TenantAccess(
            self.stores.tenants, settings, read_profile, trail=self.stores.audit, on_cost=self.metrics.record_cost
        )
        self.audit = self.access.audit
        self.web = self._build_web()
        self.records = self._build_records()
        self.pipeline_for = lru_cache(MOST_PIPELINES)(self._search_pipeline)
        """The search pipeline of some retrieval settings: tenants may have their own."""
        self.first_reads = FirstReads(settings.retrieval.timeout)
        cache = SearchCache(
            self.ledger,
            self.access.identity,
            seconds=settings.cache.search_seconds,
            memory_mb=settings.cache.memory_mb,
            shared=self.stores.shared_cache,
        )
        self.federated_search = FederatedSearch(
            self.pipeline_for, cache, self.web.find if self.web else None, self.records
        )
        limits = settings.limits
        at_once = limits.searches_at_once or max(4, 2 * (os.cpu_count() or 1))
        self.search_turns = Turns("searches", at_once, waiting=limits.waiting, seconds=SEARCH_WAIT)
        # An answer may wait for a language model: a quarter of the turns is left to other tenants meanwhile.
        own = max(1, 3 * limits.answers_at_once // 4)
        self.answer_turns = Turns(
            "answers", limits.answers_at_once, waiting=limits.waiting, seconds=ANSWER_WAIT, most_of_one=own
        )
        self.answer_cache = AnswerCache(self.ledger, settings.cache.answer_similarity)
        self.shop_lookups = LookupCache()
        self.shop_databases = self._build_shops()

    async def close(self) -> None:
        """Close models, child processes and files; one that fails to close keeps none of the others open."""
        self.access.close()
        async with AsyncExitStack() as stack:
            for close in reversed(self._closing):
                stack.push_async_callback(close)

    @cached_property
    def queue_meter(self) -> QueueMeter:
        return QueueMeter(self.stores.queue, self.metrics)

    @cached_property
    def readiness(self) -> ReadinessMonitor:
        from ragstone.engine.monitoring.health import ReadinessMonitor

        monitor = ReadinessMonitor(self)
        self._closing.append(monitor.close)
        return monitor

    @cached_property
    def alert_book(self) -> SqlAlertBook:
        from ragstone.stores.control.alerts import SqlAlertBook

        return SqlAlertBook(self.ledger)

    @cached_property
    def alert_watch(self) -> AlertWatch:
        from ragstone.engine.monitoring.alerts import AlertWatch

        watch = AlertWatch(self, self.alert_book)
        self._closing.append(watch.close)
        return watch

    async def keep_house(self) -> None:
        """Do what concerns no single tenant, if it is time for that."""
        await self.maintenance.keep_house()
        await self.alert_watch.tick()

    @cached_property
    def preparer(self) -> Preparer:
        from ragstone.ingest.prepare import make_preparer

        preparer, close = make_preparer(
            self.settings, self.embedder, tokenizer_of(self.embedder), self.llm, self.embedders.default_id
        )
        self._closing.append(close)
        return preparer

    @cached_property
    def verifier_of_writes(self) -> Verifier:
        from ragstone.ingest.verify import Verifier

        return Verifier(self.ledger, self.stores.vectors, self.stores.lexical)

    @cached_property
    def pipeline(self) -> IngestPipeline:
        from ragstone.ingest.embed import ModelChoice
        from ragstone.ingest.pipeline import IngestPipeline

        async def choose(tenant: str) -> Embedder | None:
            name = (await self.access.settings_for(tenant)).embedding.model
            return None if name == self.settings.embedding.model else await self.embedders.get(name)

        own, of = self.embedders.default, self.embedders.for_space
        return IngestPipeline(
            self.ledger,
            self.preparer,
            ModelChoice(self.preparer.model, own, self.stores.spaces, of, choose),
            self.verifier_of_writes,
            self.settings.limits,
            self.access,
            self.settings.extract.scan_command,
            on_report=self.metrics.record_ingest,
        )

    @cached_property
    def source_context(self) -> SourceContext:
        from ragstone.fetch.fetcher import Fetcher
        from ragstone.ingest.sources.config import SourceContext

        fetcher = Fetcher(self.settings.fetch)
        self._closing.append(fetcher.close)
        return SourceContext(fetcher, self.settings.limits, self.settings.databases)

    def build_source(self, kind: str, name: str, config: Mapping[str, Any]) -> Source:
        """Build a source of a kind, with a name and a configuration."""
        from ragstone.ingest.sources import build_source

        return build_source(kind, name, config, self.source_context)

    @cached_property
    def maintenance(self) -> Maintenance:
        from ragstone.fetch.webhook import Webhook
        from ragstone.ingest.backfill import SpaceFiller, SpaceMaintenance
        from ragstone.ingest.jobs.maintenance import Maintenance

        jobs = self.settings.jobs
        webhook = Webhook(jobs.webhook, jobs.webhook_secret, self.settings.fetch) if jobs.webhook else None
        if webhook:
            self._closing.append(webhook.close)
        filler = SpaceFiller(self.stores.spaces, self.embedders.for_space)
        return Maintenance(
            self.ledger,
            self.stores.queue,
            self.stores.sources,
            lambda: self.preparer,
            self.build_source,
            webhook,
            tenants=self.stores.tenants,
            audit=self.audit,
            space_maintenance=SpaceMaintenance(self.ledger, self.stores.spaces, filler, self.access),
            forget_outdated=self.forget_outdated,
            start_refresh=self.triggers.start_due,
            charge_store=self.access.charge_store,
            remove_left_folders=self.remove_left_folders,
        )

    async def forget_outdated(self, tenant: str) -> None:
        """Remove what was asked longer ago than the settings say, also while nothing is asked any more."""
        await self.ledger.forget_outdated(tenant, now() - timedelta(days=self.settings.activity.days))

    async def remove_left_folders(self) -> None:
        """Remove what tasks that no longer run have left in the data folder."""
        from ragstone.engine.tasks import remove_left_folders

        await remove_left_folders(self)

    async def run_refresh(self, tenant: str, job: Job, tell: Callable[[JobProgress], None]) -> str:
        """Do a refresh that is queued; return what it came to, for the notice."""
        reread = self.maintenance.reread if job.facts["sources"] else None
        return await self.refresher.do(tenant, job, tell, self.settings.embedding.refresh.sample, reread)

    async def run_task(self, tenant: str, job: Job, tell: Callable[[JobProgress], None]) -> tuple[str, TaskResult]:
        """Do a task that is queued; return what it came to, and the file that it made."""
        from ragstone.engine.tasks import run_task

        return await run_task(self, tenant, job, tell)

    @cached_property
    def reembedder(self) -> Reembedder:
        from ragstone.engine.embeddings.reembed import Reembedder

        # Without a reranker, which would hide what the models themselves find.
        search = SearchPipeline(
            self.ledger,
            self.stores.vectors,
            self.stores.lexical,
            self.embedders.for_space,
            None,
            self.settings.retrieval,
            self.settings.reranking,
        )
        return Reembedder(self.ledger, self.stores.spaces, self.embedders, search)

    @cached_property
    def refresher(self) -> Refresher:
        from ragstone.engine.embeddings.refresh import Refresher

        return Refresher(self.ledger, self.stores.spaces, self.embedders, self.reembedder, self.access)

    @cached_property
    def triggers(self) -> Triggers:
        from ragstone.engine.embeddings.triggers import Triggers

        return Triggers(
            self.ledger,
            self.stores.queue,
            self.stores.spaces,
            self.embedders,
            self.access,
            self.report_searches,
            self.settings,
        )

    @cached_property
    def file_upkeep(self) -> FileUpkeep:
        from ragstone.stores.corpus.upkeep import FileUpkeep
        from ragstone.stores.indexes import IndexCache
        from ragstone.stores.lexical.bm25 import ResidentBm25Index

        bm25 = ResidentBm25Index(self.ledger, IndexCache(self.settings.store.memory_mb))
        return FileUpkeep(self.ledger, self.stores.corpora, bm25)

    @cached_property
    def eraser(self) -> Eraser:
        from ragstone.engine.erasure import Eraser

        return Eraser(self.stores, self.file_upkeep)

    @cached_property
    def search_log(self) -> SearchLog:
        from ragstone.stores.activity.search_log import SearchLog

        log = SearchLog(self.ledger, self.settings.activity.days)
        self._closing.insert(0, log.close)  # first, because it writes to the ledger
        return log

    async def report_searches(self, tenant: str, kb: str, days: int) -> SearchReport:
        """Return how the searches of a tenant's kb did in some days."""
        from ragstone.engine.feedback import Feedback

        return await Feedback(TenantScope(self, tenant, "", "")).report(days=days, kb=kb)

    @cached_property
    def entailer(self) -> Entailer | None:
        """Judges whether a passage says what a sentence says; None leaves it to explicit checks."""
        from ragstone.models.entailment.model import build_entailer

        entailer = build_entailer(self.settings.entailment, self.llm, self.settings.llm)
        if entailer is not None:
            self._closing.append(entailer.close)
        return entailer

    @cached_property
    def verifier(self) -> ClaimVerifier:
        from ragstone.answer.verify import ClaimVerifier

        return ClaimVerifier(self.embedder, lambda: self.entailer)

    @cached_property
    def reader(self) -> Reader:
        """Tells whether a sentence answers a question; it is loaded when a question needs it."""
        from ragstone.answer.reader import Reader
        from ragstone.models.weights.reader import BESIDE

        model = build_reader(self.settings.embedding)
        self._closing.append(model.close)
        return Reader(model, BESIDE)

    @cached_property
    def answerer(self) -> Answerer:
        from ragstone.answer.ask import Answerer

        settings, tokenizer = self.settings, tokenizer_of(self.embedder)
        # Where an LLM reranks, an LLM also writes the answers.
        reranker = self.reranker if settings.reranking.kind == "cross_encoder" else None
        return Answerer(
            self.embedder,
            self.llm,
            settings.answer,
            settings.llm,
            tokenizer,
            self.entailer,
            reranker=reranker,
            reader=self.reader,
        )

    @cached_property
    def researcher(self) -> Researcher:
        from ragstone.answer.research import Researcher

        return Researcher(self.llm, self.reranker, self.settings.answer.research_seconds)

    def _search_pipeline(self, retrieval: RetrievalSettings) -> SearchPipeline:
        settings, of = self.settings, self.embedders.for_space
        return SearchPipeline(
            self.ledger,
            self.stores.vectors,
            self.stores.lexical,
            of,
            self.reranker,
            retrieval,
            settings.reranking,
            second_reranker=self.second_reranker,
            transformer=build_transformer(retrieval, self.llm, settings.llm),
            compress=CompressStage(retrieval.compress, of, self.llm, settings.llm.max_tokens),
        )

    def _build_web(self) -> WebSearcher | None:
        settings = self.settings
        if settings.web.kind == "none":
            return None
        from ragstone.stores.activity.web_results import WebResultRepository
        from ragstone.websearch import build_web_search
        from ragstone.websearch.searcher import WebSearcher

        def cache(tenant: str) -> WebResultRepository:
            return WebResultRepository(self.ledger, tenant, settings.web.cache_hours)

        price = settings.prices.web_query(settings.web.kind)
        searcher = WebSearcher(build_web_search(settings.web), cache, settings.web.k, price)
        self._closing.append(searcher.close)
        return searcher

    def _build_shops(self) -> Mapping[str, ShopDatabase]:
        """Return the databases of shops that have one, by tenant."""
        if not self.settings.shops:
            return {}
        from ragstone.ingest.sources.database.shop import ShopDatabase

        databases = self.settings.databases
        return {tenant: ShopDatabase(tenant, mapping, databases) for tenant, mapping in self.settings.shops.items()}

    def _build_records(self) -> RecordFinder | None:
        if not self.settings.records.sets:
            return None
        from ragstone.ingest.sources.database.records import RecordFinder

        return RecordFinder(self.settings.records, self.settings.databases)


def secret_keys(kind: str) -> Collection[str]:
    """Return which settings of a kind of source are secrets."""
    from ragstone.ingest import sources

    return sources.secret_keys(kind)


def _reranker(settings: Settings, stage: RerankingStage) -> Reranker | None:
    return build_llm_reranker(stage, settings.llm, settings.prices) if stage.kind == "llm" else build_reranker(stage)


def _settings_of(settings: Settings, model: str, dimension: int | None) -> EmbeddingSettings:
    """Return the settings for another model or dimension: the same address, key and runtime."""
    price = settings.embedding.price if model == settings.embedding.model else None
    others = {"model": model, "path": None, "dimensions": dimension, "fallback": None, "price": price}
    return settings.embedding.model_copy(update=others)
