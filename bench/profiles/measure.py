"""Measure one profile: ingest and search of labelled pages, and of 10,000 chunks where its design asks for them."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from bench.profiles.record import LABELS, Record, hash_folder, hash_labels, hash_profile, hash_texts
from bench.profiles.stand_ins import with_local_embedder, with_local_reranker
from bench.report import percentiles, timed
from bench.synthetic import SyntheticText
from bench.takaro.labels import load_labels
from bench.takaro.measure import with_page_ids
from ragstone import Settings, open_engine
from ragstone.core.documents import IngestReport
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.types import Failure, Item
from ragstone.engine.experiments import ARMS, MODES, SYSTEMS, WorkspaceRetriever
from ragstone.evaluate.dataset import Dataset
from ragstone.evaluate.metrics import deepest
from ragstone.evaluate.report import figures_of_ingest, figures_of_rows, readable_share
from ragstone.evaluate.runner import SystemScores, dataset_id, evaluate
from ragstone.ingest.sources.files.read import scan_paths
from ragstone.settings.load import load_settings
from ragstone.settings.retrieval import RerankingSettings
from ragstone.testing.workspaces import workspace_of

METRICS = ("hit@1", "hit@5", "hit@10", "recall@10", "p@5", "mrr@10", "ndcg@10")
DEPTH = deepest(METRICS)
PAGES = "takaro-docs"
LARGE, CHUNKS = "synthetic 10k", 10_000
WORDS_PER_DOCUMENT = 2_100
"""About twenty chunks of the rpg profile: the made-up words have four or five word pieces each."""
QUERIES = 100
READ_DOCUMENTS = 200
LONGEST_SEARCH = 60


@dataclass
class CpuTimer:
    """A retriever whose searches are also timed in processor time, which other work on the machine changes little."""

    inner: WorkspaceRetriever
    spent: list[float] = field(default_factory=list)

    async def retrieve(self, query: str, k: int) -> SearchResult:
        started = process_time()
        found = await self.inner.retrieve(query, k)
        if k == DEPTH:
            self.spent.append((process_time() - started) * 1000)
        return found


@dataclass(frozen=True)
class Size:
    """How much is measured; less than all of it only to try whether a profile runs."""

    pages: int | None = None
    queries: int | None = None
    large_documents: int = CHUNKS // 20 + 10


WHOLE = Size()
TRIAL = Size(pages=4, queries=4, large_documents=3)


async def measure_profile(name: str, pages: Path, made: dict[str, Any], size: Size = WHOLE) -> Record:
    """Return the record of a profile that was measured in a new, empty place."""
    with tempfile.TemporaryDirectory() as place, _own_store(name, Path(place)) as named:
        settings, said = with_local_embedder(named)
        with with_local_reranker(settings) as (settings, also):
            figures, degraded = await _measure_pages(settings, pages, size)
            data = {PAGES: hash_folder(pages), LABELS: hash_labels()}
            if "ingest.minutes_per_10k_chunks" in settings.targets:
                texts = list(large_texts(size.large_documents))
                data[LARGE] = hash_texts(texts)
                figures |= await _measure_large(settings, texts)
            figures["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Record(
        profile=name,
        profile_sha256=hash_profile(name),
        models=_models(settings, also),
        data=data,
        stand_ins=(*said, *also),
        figures={figure: round(float(value), 4) for figure, value in figures.items()},
        store={part: getattr(settings.store, part).kind for part in ("ledger", "vectors", "lexical")},
        degraded=degraded,
        made=made,
    )


@contextmanager
def _own_store(name: str, place: Path) -> Iterator[Settings]:
    """Yield the profile's settings on the store that it names, with nothing logged or cached."""
    overrides: dict[str, Any] = {"profile": name, "data_dir": place / "data"}
    # A search that takes longer than it may is to be counted with all its time, and not cut.
    overrides |= {"activity.searches": False, "cache.search_seconds": 0, "retrieval.timeout": LONGEST_SEARCH}
    settings = load_settings(overrides=overrides, environment={})
    if settings.store.ledger.kind == "postgres":
        from tests.conformance.postgres_server import server

        overrides["store.ledger.dsn"] = server(18).database(place)
        settings = load_settings(overrides=overrides, environment={})
    yield settings


async def _measure_pages(settings: Settings, pages: Path, size: Size) -> tuple[dict[str, float], tuple[str, ...]]:
    dataset = load_labels().dataset
    dataset = replace(dataset, queries=dataset.queries[: size.queries])
    async with open_engine(settings) as engine:
        items, _ = await scan_paths([pages], settings.limits)
        workspace = workspace_of(engine)
        report = await workspace.documents.ingest_items(islice(with_page_ids(items, pages), size.pages))
        figures = _figures_of(report)
        documents = await workspace.documents.list(limit=READ_DOCUMENTS)
        texts = [live.chunk.text for document in documents for live in await workspace.documents.chunks(document.id)]
        figures["chunks.readable"] = readable_share(texts) or 0.0
    rows = [await _measure_system(settings, system, dataset) for system in (*ARMS, *MODES)]
    figures |= figures_of_rows(rows, settings.retrieval.mode)
    figures["passages.p@5"] = await _passage_precision(settings, dataset)
    degraded = {f"{row.system}: {stage}" for row in rows for stage in row.degraded}
    return figures, tuple(sorted(degraded))


def _figures_of(report: IngestReport) -> dict[str, float]:
    if report.failed:
        print(f"  failed: {[failure.error for failure in report.failed]}", file=sys.stderr)
    return {**figures_of_ingest(report), "documents": report.documents, "chunks": report.chunks}


async def _measure_system(settings: Settings, system: str, dataset: Dataset) -> SystemScores:
    """Return the scores of one way to search, in an engine of its own."""
    chosen = SYSTEMS[system]
    own = settings if chosen.reranks else settings.model_copy(update={"reranking": RerankingSettings()})
    async with open_engine(own) as engine:
        await engine.warm(own.tenant)
        retriever = CpuTimer(WorkspaceRetriever(workspace_of(engine), chosen))
        row = await evaluate(retriever, dataset, system=system, metrics=METRICS)
    print(f"  {system}: {row.scores}, p95 {row.latency_ms(95):.0f} ms {row.degraded}", file=sys.stderr)
    return replace(row, stages={**row.stages, "cpu": tuple(retriever.spent[1:])})


async def _passage_precision(settings: Settings, dataset: Dataset) -> float:
    """Return the share of the first five passages that come from a page which answers or helps."""
    shares = []
    async with open_engine(settings) as engine:
        workspace = workspace_of(engine)
        for query in dataset.queries:
            hits = (await workspace.search(SearchQuery(query.text, k=5))).hits
            shares.append(sum(dataset.grades[query.id].get(dataset_id(hit), 0) > 0 for hit in hits) / 5)
    return float(np.mean(shares))


def large_texts(documents: int = WHOLE.large_documents) -> Iterator[str]:
    """Yield the documents of synthetic text, the same ones every time."""
    text = SyntheticText(4)
    for _ in range(documents):
        yield text.words(WORDS_PER_DOCUMENT)


async def _measure_large(settings: Settings, texts: Sequence[str]) -> dict[str, float]:
    """Return the figures of a knowledge base of 10,000 chunks of synthetic text, embedded with the real model."""
    own = settings.model_copy(update={"kb": "large"})
    items: list[Item | Failure] = [
        Item("files", f"{number}.txt", f"{number}.txt", text) for number, text in enumerate(texts)
    ]
    async with open_engine(own) as engine:
        workspace = workspace_of(engine)
        report = await workspace.documents.ingest_items(items)
        await engine.warm(own.tenant)
        asked = SyntheticText(5)
        queries = [asked.query() for _ in range(QUERIES + 10)]
        spent = await timed(lambda number: workspace.search(queries[number]), len(queries) - 3)
    low, high = percentiles(spent)
    figures = _figures_of(report) | {"p50_ms": low, "p95_ms": high}
    figures["load"] = os.getloadavg()[0]
    return {f"10k.{figure}": value for figure, value in figures.items()}


def _models(settings: Settings, reranking: Sequence[str]) -> dict[str, str]:
    from ragstone.models.weights.catalogue import canonical_name, known_model

    known = known_model(settings.embedding.model)
    models = {"embedding": known.id if known else canonical_name(settings.embedding.model)}
    if settings.reranking.kind != "none":
        models["reranker"] = "stand-in" if reranking else settings.reranking.model or ""
    return models
