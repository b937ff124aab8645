"""Settings → Engine: the only place that picks adapters."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.answer.ask import Answerer
from ragstone.core.protocols import Ledger, LexicalIndex, VectorIndex
from ragstone.core.registry import Registry
from ragstone.core.settings import EmbeddingSettings, Settings
from ragstone.engine import Engine, Parts
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.parsers.pool import ParserLimits, ParserPool
from ragstone.models import build_embedder, build_llm, build_reranker, build_tokenizer
from ragstone.stores.residents import Residents

LEDGERS = Registry("ledger", {"sqlite": "ragstone.stores.ledger.sqlite:SqliteLedger"})
VECTORS = Registry("vector DB", {"sqlite": "ragstone.stores.vectors.sqlite:SqliteVectorIndex"})
LEXICAL = Registry("lexical index", {"sqlite": "ragstone.stores.lexical.sqlite:SqliteLexicalIndex"})


@dataclass(frozen=True, slots=True)
class Stores:
    """The ledger and the two indexes that are derived from it."""

    ledger: Ledger
    vectors: VectorIndex
    lexical: LexicalIndex


def open_stores(settings: Settings) -> Stores:
    """The stores that the settings name. Files are made when a tenant is first written to or read."""
    store = settings.store
    lexical_type, vectors_type = LEXICAL.load(store.lexical.kind), VECTORS.load(store.vectors.kind)
    ledger = LEDGERS.load(store.ledger.kind)(settings.data_dir, lexical_type.writers(), store.open_tenants)
    residents = Residents(store.memory_mb)
    return Stores(ledger, vectors_type(ledger, residents), lexical_type(ledger, residents))


def open_engine(settings: Settings | None = None) -> Engine:
    """An engine of these settings. Nothing is loaded, started or written until it is needed."""
    settings = settings or Settings()
    stores = open_stores(settings)
    limits = settings.limits
    embedder = build_embedder(settings.embedding)
    reranker = build_reranker(settings.reranking)
    llm = build_llm(settings.llm)
    tokenizer = build_tokenizer(settings.embedding)
    parsers = ParserPool(
        ParserLimits(
            seconds=limits.parse_seconds,
            memory_mb=limits.parse_memory_mb,
            pages=limits.pages,
            file_mb=limits.file_mb,
        )
    )
    closing = [parsers.close, stores.ledger.close, embedder.close]
    closing += [model.close for model in (reranker, llm) if model]
    return Engine(
        settings,
        Parts(
            ledger=stores.ledger,
            vectors=stores.vectors,
            lexical=stores.lexical,
            embedder=embedder,
            embedder_named=lambda name: build_embedder(EmbeddingSettings(model=name)),
            reranker=reranker,
            llm=llm,
            chunker=build_chunker(settings.chunking, tokenizer),
            parse=parsers.parse,
            answerer=Answerer(embedder, llm, settings.answer, settings.llm, tokenizer),
            closing=tuple(closing),
        ),
    )
