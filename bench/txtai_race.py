"""Hybrid queries against txtai, the quickest of the peers: same texts and vectors, call by call in turns."""

from __future__ import annotations

import asyncio
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bench.data import Collection, Vectors, load, vectors
from bench.peers import KnownQueries, build
from bench.report import Row, percentiles, ratio_row
from bench.searching import pipeline_over
from ragstone.evaluate.metrics import score
from ragstone.query.context import SearchRequest
from ragstone.settings.tree import Settings
from ragstone.stores.factory import open_stores

PART = "beside txtai"
EXACT = {"components": "IDMap,Flat"}
"""Left alone it takes an approximate index at this size, and nDCG falls to 0.65."""


def run(folder: Path) -> list[Row]:
    if not find_spec("txtai"):
        return [Row(PART, "queries", "not measured: make peers installs it")]
    collection = load(folder)
    with tempfile.TemporaryDirectory() as place:
        return asyncio.run(_race(Path(place), collection, vectors(collection, "all-MiniLM-L6-v2")))


async def _race(place: Path, collection: Collection, made: Vectors) -> list[Row]:
    from txtai import Embeddings

    queries = collection.dataset.queries
    known = {query.text: row for query, row in zip(queries, made.queries, strict=True)}
    everything = {**known, **dict(zip(collection.texts, made.documents, strict=True))}
    peer = Embeddings(
        method="external",
        transform=lambda texts: np.stack([everything[text] for text in texts]),
        hybrid=True,
        faiss=EXACT,
    )
    peer.index((identity, text, None) for identity, text in zip(collection.ids, collection.texts, strict=True))
    stores = open_stores(Settings(data_dir=place))
    await build(stores, collection, made)
    pipeline = pipeline_over(stores, KnownQueries(made.model, known, made.queries.shape[1]))
    kb = await stores.ledger.of("default").kb("default")
    assert kb is not None
    spent: dict[str, list[float]] = {"txtai": [], "Ragstone": []}
    gains: dict[str, list[float]] = {"txtai": [], "Ragstone": []}
    for measured in (False, True):
        for query in queries:
            started = time.perf_counter()
            theirs = [identity for identity, _ in peer.search(query.text, 10)]
            between = time.perf_counter()
            request = SearchRequest(query.text, 10, "balanced", "hybrid", "zscore", 100)
            ours = [hit.uri for hit in (await pipeline.search("default", kb, request)).hits]
            if measured:
                spent["txtai"].append(between - started)
                spent["Ragstone"].append(time.perf_counter() - between)
                for name, ranking in (("txtai", theirs), ("Ragstone", ours)):
                    grades = collection.dataset.grades[query.id]
                    gains[name].append(score(ranking, grades, ["ndcg@10"])["ndcg@10"])
    await stores.ledger.close()
    times = {name: percentiles(seconds) for name, seconds in spent.items()}
    return [
        *(
            Row(PART, name, f"p50 / p95 {low:.1f} / {high:.1f} ms, nDCG@10 {np.mean(gains[name]):.3f}")
            for name, (low, high) in times.items()
        ),
        ratio_row(PART, "Ragstone / txtai, p50", times["Ragstone"][0] / times["txtai"][0], at_most=1.0),
        ratio_row(PART, "Ragstone / txtai, p95", times["Ragstone"][1] / times["txtai"][1], at_most=1.0),
    ]
