"""Settings → Engine: the only place that picks adapters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ragstone.core.jobs import Job, JobProgress
from ragstone.core.protocols import LLM, Embedder, Entailer, Reranker, Source
from ragstone.engine import Engine
from ragstone.gate import Gate
from ragstone.models import build_embedder, build_llm, build_llm_reranker, build_reranker, tokenizer_of
from ragstone.models.embedders.pool import EmbedderShelf
from ragstone.parts import Closing, Parts
from ragstone.settings.load import load_settings, read_profile
from ragstone.settings.retrieval import RerankingStage
from ragstone.settings.tree import EmbeddingSettings, Settings
from ragstone.stores.factory import Stores, open_stores, reindex

if TYPE_CHECKING:
    from ragstone.activity import Activity
    from ragstone.answer import Answerer
    from ragstone.answer.research import Researcher
    from ragstone.answer.verify import ClaimVerifier
    from ragstone.corpora.builder import CorpusBuilder
    from ragstone.erasure import Eraser
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.prepare import Preparer
    from ragstone.ingest.sources.database.records import RecordFinder
    from ragstone.intake import Intake
    from ragstone.reembed import Reembedder
    from ragstone.refresh.refresher import Refresher
    from ragstone.refresh.triggers import Triggers
    from ragstone.transfer.mover import Mover
    from ragstone.websearch.searcher import WebSearcher


def open_engine(settings: Settings | None = None) -> Engine:
    """An engine of these settings. Nothing is loaded, started or written until it is needed."""
    settings = settings or load_settings()
    stores = open_stores(settings, secret_keys)
    embedder = build_embedder(settings.embedding)
    reranker = _reranker(settings, settings.reranking)
    then = settings.reranking.then
    second_reranker = _reranker(settings, then) if then.kind != "none" else None
    llm = build_llm(settings.llm)
    embedders = EmbedderShelf(embedder, lambda name: build_embedder(_named(settings, name)))
    closing: list[Closing] = [stores.audit.close, stores.close, embedder.close, embedders.close]
    closing += [model.close for model in (reranker, second_reranker, llm) if model]
    gate = Gate(stores.tenants, settings, read_profile, trail=stores.audit)
    entailer = cache(lambda: _entailer(settings, llm, closing))
    preparer = cache(lambda model: _preparer(settings, embedder, llm, model, closing))
    pipeline = cache(lambda model: _pipeline(settings, stores, preparer(model), embedders, gate))
    activity = cache(lambda: _activity(settings, stores, gate, llm, closing))
    reembedder = cache(lambda: _reembedder(settings, stores, embedders))
    refresher = cache(lambda: _refresher(stores, embedders, reembedder(), gate))
    triggers = cache(lambda: _triggers(settings, stores, embedders, gate, activity))
    parts = Parts(
        ledger=stores.ledger,
        vectors=stores.vectors,
        lexical=stores.lexical,
        embedder=embedder,
        embedders=embedders,
        reranker=reranker,
        second_reranker=second_reranker,
        llm=llm,
        preparer=preparer,
        pipeline=pipeline,
        intake=cache(
            lambda model: _intake(
                settings,
                stores,
                lambda: preparer(model),
                lambda: pipeline(model),
                embedders,
                gate,
                closing,
                refresher,
                triggers,
            )
        ),
        reembedder=reembedder,
        refresher=refresher,
        triggers=triggers,
        mover=cache(lambda: _mover(settings, stores, gate)),
        corpora=cache(lambda: _corpora(settings, stores, embedders, llm, gate, activity)),
        eraser=cache(lambda: _eraser(stores)),
        reindex=lambda tenant, kb: reindex(stores, tenant, kb),
        web=_web(settings, stores, closing),
        records=_records(settings),
        activity=activity,
        entailer=entailer,
        verifier=cache(lambda: _verifier(embedder, entailer)),
        answerer=cache(lambda: _answerer(settings, embedder, llm, entailer())),
        researcher=cache(lambda: _researcher(settings, reranker, llm)),
        gate=gate,
        tenants=stores.tenants,
        closing=closing,
    )
    return Engine(settings, parts)


def secret_keys(kind: str) -> Collection[str]:
    """Which settings of a kind of source are secrets."""
    from ragstone.ingest import sources

    return sources.secret_keys(kind)


def _reranker(settings: Settings, stage: RerankingStage) -> Reranker | None:
    return build_llm_reranker(stage, settings.llm) if stage.kind == "llm" else build_reranker(stage)


def _named(settings: Settings, model: str) -> EmbeddingSettings:
    """The settings for another model: the same address, key and runtime, but none of what is the first one's own."""
    others = {"model": model, "path": None, "dimensions": None, "fallback": None}
    return settings.embedding.model_copy(update=others)


def _preparer(
    settings: Settings, embedder: Embedder, llm: LLM | None, model: str, closing: list[Closing]
) -> Preparer:
    from ragstone.making import make_preparer

    preparer, close = make_preparer(settings, embedder, llm, model)
    closing.append(close)
    return preparer


def _pipeline(
    settings: Settings, stores: Stores, preparer: Preparer, embedders: EmbedderShelf, gate: Gate
) -> IngestPipeline:
    from ragstone.ingest.embed import ModelChoice
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.verify import Verifier

    async def chosen(tenant: str) -> Embedder | None:
        name = (await gate.settings_for(tenant)).embedding.model
        return None if name == settings.embedding.model else await embedders.named(name)

    verifier = Verifier(stores.ledger, stores.vectors, stores.lexical)
    return IngestPipeline(
        stores.ledger,
        preparer,
        embedders.own,
        verifier,
        settings.limits,
        settings.extract.scan_command,
        gate,
        ModelChoice(preparer.model, embedders.own, stores.spaces, embedders.of, chosen),
    )


def _intake(
    settings: Settings,
    stores: Stores,
    preparer: Callable[[], Preparer],
    pipeline: Callable[[], IngestPipeline],
    embedders: EmbedderShelf,
    gate: Gate,
    closing: list[Closing],
    refresher: Callable[[], Refresher],
    triggers: Callable[[], Triggers],
) -> Intake:
    from ragstone.fetch.fetcher import Fetcher
    from ragstone.ingest.backfill import SpaceFiller, SpaceMaintenance
    from ragstone.ingest.jobs.maintenance import Maintenance
    from ragstone.ingest.jobs.webhook import Webhook
    from ragstone.ingest.sources import build_source
    from ragstone.ingest.sources.context import SourceContext
    from ragstone.intake import Intake

    fetcher = Fetcher(settings.fetch)
    webhook = Webhook(settings.jobs, settings.fetch) if settings.jobs.webhook else None
    closing += [fetcher.close, *([webhook.close] if webhook else [])]
    context = SourceContext(fetcher, settings.limits, settings.databases)

    def build(kind: str, name: str, config: Mapping[str, Any]) -> Source:
        return build_source(kind, name, config, context)

    ledger, queue, book = stores.ledger, stores.queue, stores.book
    spaces = SpaceMaintenance(ledger, stores.spaces, SpaceFiller(stores.spaces, embedders.of), gate)
    upkeep = Maintenance(
        ledger,
        queue,
        book,
        preparer,
        build,
        webhook,
        tenants=stores.tenants,
        audit=gate.audit,
        space_maintenance=spaces,
        start_refresh=triggers().start_due,
    )

    async def refresh(tenant: str, job: Job, tell: Callable[[JobProgress], None]) -> str:
        reread = upkeep.reread if job.facts["sources"] else None
        return await refresher().do(tenant, job, tell, settings.embedding.refresh.sample, reread)

    return Intake(settings, ledger, queue, book, pipeline, preparer, build, upkeep, gate, refresh)


def _refresher(stores: Stores, embedders: EmbedderShelf, reembedder: Reembedder, gate: Gate) -> Refresher:
    from ragstone.refresh.refresher import Refresher

    return Refresher(stores.ledger, stores.spaces, embedders, reembedder, gate)


def _triggers(
    settings: Settings,
    stores: Stores,
    embedders: EmbedderShelf,
    gate: Gate,
    activity: Callable[[], Activity],
) -> Triggers:
    from ragstone.refresh.triggers import Triggers

    return Triggers(stores.ledger, stores.queue, stores.spaces, embedders, gate, activity, settings)


def _reembedder(settings: Settings, stores: Stores, embedders: EmbedderShelf) -> Reembedder:
    from ragstone.query.pipeline import SearchPipeline
    from ragstone.reembed import Reembedder

    # Without a reranker, which would hide what the models themselves find.
    search = SearchPipeline(
        stores.ledger,
        stores.vectors,
        stores.lexical,
        embedders.of,
        None,
        settings.retrieval,
        settings.reranking,
    )
    return Reembedder(stores.ledger, stores.spaces, embedders, search)


def _mover(settings: Settings, stores: Stores, gate: Gate) -> Mover:
    from ragstone.transfer.mover import Mover

    return Mover(stores, settings, gate, secret_keys)


def _corpora(
    settings: Settings,
    stores: Stores,
    embedders: EmbedderShelf,
    llm: LLM | None,
    gate: Gate,
    activity: Callable[[], Activity],
) -> CorpusBuilder:
    from ragstone.corpora.builder import CorpusBuilder
    from ragstone.corpora.pipeline import BuildPipelines
    from ragstone.stores.corpus.upkeep import FileUpkeep
    from ragstone.stores.index_cache import Residents
    from ragstone.stores.lexical.bm25 import ResidentBm25Index

    pipelines = BuildPipelines(settings, stores, embedders, llm, gate)
    bm25 = ResidentBm25Index(stores.ledger, Residents(settings.store.memory_mb))
    upkeep = FileUpkeep(stores.ledger, stores.corpora, bm25)
    return CorpusBuilder(settings, stores, pipelines, upkeep, gate, activity)


def _eraser(stores: Stores) -> Eraser:
    from ragstone.erasure import Eraser

    return Eraser(stores)


def _researcher(settings: Settings, reranker: Reranker | None, llm: LLM | None) -> Researcher:
    from ragstone.answer.research import Researcher

    return Researcher(llm, reranker, settings.answer.research_seconds)


def _activity(
    settings: Settings, stores: Stores, gate: Gate, llm: LLM | None, closing: list[Closing]
) -> Activity:
    from ragstone.activity import Activity
    from ragstone.stores.activity.search_log import SearchLog

    log = SearchLog(stores.ledger, settings.activity.days)
    closing.insert(0, log.close)  # the first to go: it writes to the ledger
    return Activity(stores.ledger, log, gate, llm, settings)


def _web(settings: Settings, stores: Stores, closing: list[Closing]) -> WebSearcher | None:
    if settings.web.kind == "none":
        return None
    from ragstone.stores.activity.web_results import WebResultRepository
    from ragstone.websearch import build_web_search
    from ragstone.websearch.searcher import WebSearcher

    def cache(tenant: str) -> WebResultRepository:
        return WebResultRepository(stores.ledger, tenant, settings.web.cache_hours)

    searcher = WebSearcher(build_web_search(settings.web), cache, settings.web.k)
    closing.append(searcher.close)
    return searcher


def _records(settings: Settings) -> RecordFinder | None:
    if not settings.records.sets:
        return None
    from ragstone.ingest.sources.database.records import RecordFinder

    return RecordFinder(settings.records, settings.databases)


def _entailer(settings: Settings, llm: LLM | None, closing: list[Closing]) -> Entailer | None:
    from ragstone.models.entailment.model import build_entailer

    entailer = build_entailer(settings.entailment, llm, settings.llm)
    if entailer is not None:
        closing.append(entailer.close)
    return entailer


def _verifier(embedder: Embedder, entailer: Callable[[], Entailer | None]) -> ClaimVerifier:
    from ragstone.answer.verify import ClaimVerifier

    return ClaimVerifier(embedder, entailer)


def _answerer(settings: Settings, embedder: Embedder, llm: LLM | None, entailer: Entailer | None) -> Answerer:
    from ragstone.answer import Answerer

    return Answerer(embedder, llm, settings.answer, settings.llm, tokenizer_of(embedder), entailer)
