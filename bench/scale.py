"""Search over 10,000 and 100,000 synthetic chunks: the model is not what is measured."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.report import Row, percentiles, ratio_row, resident_mb, timed
from bench.searching import pipeline_over
from bench.synthetic import DIMENSION, SyntheticEmbedder, SyntheticText, fill
from ragstone.query.context import SearchRequest
from ragstone.settings.tree import Settings
from ragstone.stores.factory import Stores, open_stores

ROUNDS = 200
MEMORY_LIMIT_MB = 500


def run(chunks: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder), chunks))


async def _measure(folder: Path, chunks: int) -> list[Row]:
    part = f"{chunks // 1000}k chunks"
    stores = open_stores(Settings(data_dir=folder))
    filled = await fill(stores, chunks)
    rows = [Row(part, "store build, no model", f"{filled:.1f} s")]
    rows += await _dense(stores, chunks, part)
    rows += await _hybrid(stores, part)
    limit = MEMORY_LIMIT_MB if chunks <= 10_000 else 0
    memory = resident_mb()
    rows.append(
        Row(
            part,
            "memory, no model",
            f"{memory:.0f} MB",
            f"< {limit} MB" if limit else "",
            memory < limit if limit else None,
        )
    )
    await stores.ledger.close()
    return rows


async def _dense(stores: Stores, chunks: int, part: str) -> list[Row]:
    kb = await stores.ledger.of("default").kb("default")
    assert kb is not None
    embedder = SyntheticEmbedder()
    queries = embedder.vectors([f"query {n}" for n in range(ROUNDS)])
    matrix = np.random.default_rng(3).normal(size=(chunks, DIMENSION)).astype(np.float32)

    async def bare(n: int) -> object:
        scores = matrix @ queries[n % ROUNDS]
        best = np.argpartition(scores, chunks - 100)[chunks - 100 :]
        return best[np.argsort(-scores[best])]

    async def ours(n: int) -> object:
        return await stores.vectors.search("default", kb, queries[n % ROUNDS], 100)

    # Call by call in turns: a scan right behind another finds the second core awake, and in use no search does.
    theirs: list[float] = []
    own: list[float] = []
    await ours(0)
    for n in range(ROUNDS):
        for work, spent in ((bare, theirs), (ours, own)):
            started = time.perf_counter()
            await work(n)
            spent.append(time.perf_counter() - started)
    return [
        Row(part, "dense p50", f"{percentiles(own)[0]:.2f} ms"),
        ratio_row(part, "dense / bare numpy scan", percentiles(own)[0] / percentiles(theirs)[0], at_most=1.5),
    ]


async def _hybrid(stores: Stores, part: str) -> list[Row]:
    kb = await stores.ledger.of("default").kb("default")
    assert kb is not None
    embedder = SyntheticEmbedder()
    text = SyntheticText(99)
    queries = [text.query() for _ in range(ROUNDS)]

    pipeline = pipeline_over(stores, embedder)

    async def search(n: int) -> object:
        request = SearchRequest(queries[n % ROUNDS], 10, "balanced", "hybrid", "zscore", 100)
        return await pipeline.search("default", kb, request)

    cold = await timed(search, 1, warm=0)
    # The warm-up also gives the background thread its time to read the postings.
    low, high = percentiles(await timed(search, ROUNDS, warm=ROUNDS))
    return [
        Row(part, "hybrid first search", f"{cold[0] * 1000:.0f} ms"),
        Row(part, "hybrid p50 / p95", f"{low:.1f} / {high:.1f} ms"),
    ]
