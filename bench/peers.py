"""Ragstone's column of the peer comparison: the same data and vectors for all, times without query encoding."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.data import Collection, Vectors, load, vectors
from bench.report import Row, folder_mb, percentiles, resident_mb
from bench.searching import pipeline_over
from ragstone.core.ids import content_hash, document_id
from ragstone.core.model_types import EmbeddingModel, Embeddings
from ragstone.core.types import Chunk, NewVersion, Role
from ragstone.evaluate.metrics import score
from ragstone.language.analyzer import analyze
from ragstone.query.context import SearchRequest
from ragstone.settings.tree import Settings
from ragstone.stores.factory import Stores, open_stores

WAVE = 256
BEST_PEER = {
    "nDCG@10": "LlamaIndex 0.717",
    "query p50 / p95": "txtai 4.6 / 6.7 ms",
    "build, without embedding": "LanceDB 1.0 s",
    "disk": "LanceDB 14.5 MB",
    "memory, no encoder": "LanceDB 210–363 MB",
    "update one document": "txtai 0.07 s",
    "delete one document": "LanceDB 0.003 s",
}


class KnownQueries:
    """An embedder that has seen every question before."""

    def __init__(self, model: str, queries: Mapping[str, np.ndarray], dimension: int) -> None:
        self.model = EmbeddingModel(model, dimension, 512)
        self._queries = queries

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        return Embeddings(np.stack([self._queries[text] for text in texts]), self.model.name)

    async def close(self) -> None:
        """Nothing is held."""


def run(folder: Path, model: str) -> list[Row]:
    collection = load(folder)
    made = vectors(collection, model)
    with tempfile.TemporaryDirectory() as place:
        return asyncio.run(_measure(Path(place), collection, made))


async def _measure(place: Path, collection: Collection, made: Vectors) -> list[Row]:
    before = resident_mb()
    started = time.perf_counter()
    stores = open_stores(Settings(data_dir=place))
    await build(stores, collection, made)
    built = time.perf_counter() - started
    ndcg, spent = await _search(stores, collection, made)
    low, high = percentiles(spent)
    memory = resident_mb() - before
    update = await _update(stores, collection, made)
    delete = await _delete(stores, collection)
    disk = folder_mb(place)
    await stores.ledger.close()
    values = {
        "nDCG@10": f"{ndcg:.3f}",
        "query p50 / p95": f"{low:.1f} / {high:.1f} ms",
        "build, without embedding": f"{built:.1f} s",
        "disk": f"{disk:.1f} MB",
        "memory, no encoder": f"{resident_mb():.0f} MB ({memory:.0f} MB grown)",
        "update one document": f"{update:.4f} s",
        "delete one document": f"{delete:.4f} s",
    }
    part = f"peers, {made.model.split('@')[0]}"
    return [Row(part, what, value, f"best peer: {BEST_PEER[what]}") for what, value in values.items()]


async def build(stores: Stores, collection: Collection, made: Vectors) -> None:
    for first in range(0, len(collection.ids), WAVE):
        async with stores.ledger.transaction("default") as tx:
            kb = await tx.open_space(await tx.open_kb("default"), made.model, made.documents.shape[1])
            for n in range(first, min(first + WAVE, len(collection.ids))):
                version = _version(collection, made, n, collection.texts[n])
                await tx.activate(kb, version.document_id, await tx.stage(kb, version))


async def _search(stores: Stores, collection: Collection, made: Vectors) -> tuple[float, list[float]]:
    queries = collection.dataset.queries
    known = {query.text: row for query, row in zip(queries, made.queries, strict=True)}
    embedder = KnownQueries(made.model, known, made.queries.shape[1])

    pipeline = pipeline_over(stores, embedder)
    kb = await stores.ledger.of("default").kb("default")
    assert kb is not None
    spent, gains = [], []
    # The first pass loads what is kept in memory; the second is measured.
    for measured in (False, True):
        for query in queries:
            started = time.perf_counter()
            request = SearchRequest(query.text, 10, "balanced", "hybrid", "zscore", 100)
            result = await pipeline.search("default", kb, request)
            if measured:
                spent.append(time.perf_counter() - started)
                ranking = [hit.uri for hit in result.hits]
                gains.append(score(ranking, collection.dataset.grades[query.id], ["ndcg@10"])["ndcg@10"])
    return float(np.mean(gains)), spent


async def _update(stores: Stores, collection: Collection, made: Vectors, rounds: int = 20) -> float:
    """Seconds until a changed document is durable."""
    started = time.perf_counter()
    for n in range(rounds):
        async with stores.ledger.transaction("default") as tx:
            kb = await tx.open_kb("default")
            version = _version(collection, made, n, collection.texts[n] + " Amended.")
            await tx.activate(kb, version.document_id, await tx.stage(kb, version))
    return (time.perf_counter() - started) / rounds


async def _delete(stores: Stores, collection: Collection, rounds: int = 20) -> float:
    started = time.perf_counter()
    for identity in collection.ids[:rounds]:
        async with stores.ledger.transaction("default") as tx:
            assert await tx.delete(document_id("default", "default", "bench", identity))
    return (time.perf_counter() - started) / rounds


def _version(collection: Collection, made: Vectors, n: int, text: str) -> NewVersion:
    return NewVersion(
        document_id=document_id("default", "default", "bench", collection.ids[n]),
        source="bench",
        external_id=collection.ids[n],
        uri=collection.ids[n],
        title=collection.titles[n],
        content_hash=content_hash(text),
        text=text,
        media_type="text/plain",
        metadata={},
        recipe="bench",
        modified_at=None,
        chunks=(Chunk(0, text, 0, len(text), tokens=len(text.split())),),
        terms=(" ".join(analyze(text)),),
        vectors=made.documents[n : n + 1],
    )
