"""Settings → Engine: the only place that picks adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ragstone.configure import load_settings
from ragstone.core.errors import SettingsError
from ragstone.core.jobs import Queue, SourceBook
from ragstone.core.protocols import LLM, Embedder, Ledger, LexicalIndex, Source, VectorIndex
from ragstone.core.registry import Registry
from ragstone.core.settings import Adapter, EmbeddingSettings, Settings
from ragstone.engine import Closing, Engine, Parts
from ragstone.models import build_embedder, build_llm, build_reranker, tokenizer_of
from ragstone.stores.residents import Residents

if TYPE_CHECKING:
    from ragstone.answer import Answerer
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.prepare import Preparer
    from ragstone.intake import Intake

LEDGERS = Registry("ledger", {"sqlite": "ragstone.stores.ledger.sqlite:SqliteLedger"})
QUEUES = Registry("ledger", {"sqlite": "ragstone.stores.ledger.queue:SqlQueue"})
BOOKS = Registry("ledger", {"sqlite": "ragstone.stores.ledger.queue:SqlSourceBook"})
VECTORS = Registry("vector DB", {"sqlite": "ragstone.stores.vectors.sqlite:SqliteVectorIndex"})
LEXICAL = Registry("lexical index", {"sqlite": "ragstone.stores.lexical.sqlite:SqliteLexicalIndex"})


@dataclass(frozen=True, slots=True)
class Stores:
    """The ledger, the two indexes that are derived from it, and what is queued in it."""

    ledger: Ledger
    vectors: VectorIndex
    lexical: LexicalIndex
    queue: Queue
    book: SourceBook


def open_stores(settings: Settings) -> Stores:
    """The stores that the settings name. Files are made when a tenant is first written to or read."""
    store = settings.store
    for name, adapter in (("ledger", store.ledger), ("vectors", store.vectors), ("lexical", store.lexical)):
        _refuse_address(name, adapter)
    lexical_type, vectors_type = LEXICAL.load(store.lexical.kind), VECTORS.load(store.vectors.kind)
    ledger = LEDGERS.load(store.ledger.kind)(settings.data_dir, lexical_type.writers(), store.open_tenants)
    residents = Residents(store.memory_mb)
    queue_type, book_type = QUEUES.load(store.ledger.kind), BOOKS.load(store.ledger.kind)
    return Stores(
        ledger,
        vectors_type(ledger, residents),
        lexical_type(ledger, residents),
        queue_type(ledger),
        book_type(ledger),
    )


def _refuse_address(name: str, adapter: Adapter) -> None:
    # What is set must act: the embedded store is always under data_dir.
    unused = sorted(adapter.model_fields_set - {"kind"})
    if adapter.kind == "sqlite" and unused:
        raise SettingsError(
            f"store.{name}.{unused[0]} means nothing to the sqlite store",
            hint="it lives under data_dir; set that",
        )


def open_engine(settings: Settings | None = None) -> Engine:
    """An engine of these settings. Nothing is loaded, started or written until it is needed."""
    settings = settings or load_settings()
    stores = open_stores(settings)
    embedder = build_embedder(settings.embedding)
    reranker = build_reranker(settings.reranking)
    llm = build_llm(settings.llm)
    closing: list[Closing] = [stores.ledger.close, embedder.close]
    closing += [model.close for model in (reranker, llm) if model]
    preparer = cache(lambda model: _preparer(settings, embedder, llm, model, closing))
    pipeline = cache(lambda model: _pipeline(settings, stores, preparer(model), embedder))
    parts = Parts(
        ledger=stores.ledger,
        vectors=stores.vectors,
        lexical=stores.lexical,
        embedder=embedder,
        embedder_named=lambda name: build_embedder(_named(settings, name)),
        reranker=reranker,
        llm=llm,
        preparer=preparer,
        pipeline=pipeline,
        intake=cache(
            lambda model: _intake(settings, stores, lambda: preparer(model), lambda: pipeline(model), closing)
        ),
        answerer=cache(lambda: _answerer(settings, embedder, llm)),
        closing=closing,
    )
    return Engine(settings, parts)


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


def _pipeline(settings: Settings, stores: Stores, preparer: Preparer, embedder: Embedder) -> IngestPipeline:
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.verify import Verifier

    verifier = Verifier(stores.ledger, stores.vectors, stores.lexical)
    return IngestPipeline(
        stores.ledger, preparer, embedder, verifier, settings.limits, settings.extract.scan_command
    )


def _intake(
    settings: Settings,
    stores: Stores,
    preparer: Callable[[], Preparer],
    pipeline: Callable[[], IngestPipeline],
    closing: list[Closing],
) -> Intake:
    from ragstone.fetch import Fetcher
    from ragstone.ingest.notify import Webhook
    from ragstone.ingest.sources import build_source
    from ragstone.ingest.sources.context import SourceContext
    from ragstone.ingest.upkeep import Upkeep
    from ragstone.intake import Intake

    fetcher = Fetcher(settings.fetch)
    webhook = Webhook(settings.jobs, settings.fetch) if settings.jobs.webhook else None
    closing += [fetcher.close, *([webhook.close] if webhook else [])]
    context = SourceContext(fetcher, settings.limits, settings.databases)

    def build(kind: str, name: str, config: Mapping[str, Any]) -> Source:
        return build_source(kind, name, config, context)

    ledger, queue, book = stores.ledger, stores.queue, stores.book
    upkeep = Upkeep(ledger, queue, book, preparer, build, webhook)
    return Intake(settings, ledger, queue, book, pipeline, preparer, build, upkeep)


def _answerer(settings: Settings, embedder: Embedder, llm: LLM | None) -> Answerer:
    from ragstone.answer import Answerer

    return Answerer(embedder, llm, settings.answer, settings.llm, tokenizer_of(embedder))
