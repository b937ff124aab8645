"""How long a search takes in each mode, over 10,000 synthetic chunks, and what share each stage has in it.

The chunks are made without a model, the queries' vectors with the real local one: that is what a user waits for.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.report import Row, percentiles, timed
from bench.searching import pipeline_over
from bench.synthetic import MODEL, SyntheticText, fill
from ragstone.core.model_types import EmbeddingModel, Embeddings
from ragstone.core.protocols import Embedder
from ragstone.core.search import SearchResult
from ragstone.core.types import Mode, Role
from ragstone.models import build_embedder
from ragstone.query.context import DEADLINES_MS, SearchRequest
from ragstone.settings.tree import EmbeddingSettings, Settings
from ragstone.stores.factory import Stores, open_stores

CHUNKS = 10_000
ROUNDS = 200
WARM = 20
PART = "modes"


class RealCost:
    """The local model's vectors under the name of the synthetic Space: its time is real, its neighbours are not."""

    model: EmbeddingModel = MODEL

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        return Embeddings((await self._inner.embed(texts, role)).vectors, MODEL.id)

    async def close(self) -> None:
        await self._inner.close()


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Row]:
    stores = open_stores(Settings(data_dir=folder))
    await fill(stores, CHUNKS)
    embedder = RealCost(build_embedder(EmbeddingSettings()))
    rows = []
    for seed, (mode, limit) in enumerate(DEADLINES_MS.items()):
        rows += await _mode(stores, embedder, mode, limit, seed)
    await embedder.close()
    await stores.ledger.close()
    return rows


async def _mode(stores: Stores, embedder: Embedder, mode: Mode, limit: float, seed: int) -> list[Row]:
    kb = await stores.ledger.of("default").kb("default")
    assert kb is not None
    text = SyntheticText(1000 + seed)
    # None twice: a query whose vector is remembered would cost nothing.
    queries = [text.query() for _ in range(WARM + ROUNDS)]
    pipeline = pipeline_over(stores, embedder)
    results: list[SearchResult] = []

    async def search(_: int) -> None:
        request = SearchRequest(queries[len(results)], 10, mode, "hybrid", "zscore", 100)
        results.append(await pipeline.search("default", kb, request))

    low, high = percentiles(await timed(search, ROUNDS, warm=WARM))
    degraded = sum(bool(result.degraded) for result in results)
    return [
        Row(PART, f"{mode} p50 / p95", f"{low:.1f} / {high:.1f} ms", f"p95 < {limit:.0f} ms", high < limit),
        Row(PART, f"{mode} stages", _shares(results[WARM:])),
        Row(PART, f"{mode} searches that gave something up", str(degraded), "0", degraded == 0),
    ]


def _shares(results: Sequence[SearchResult]) -> str:
    """Each stage's share of the whole; the arms run at the same time, so the shares may come to more than it."""
    spent: defaultdict[str, float] = defaultdict(float)
    for result in results:
        for stage in result.trace:
            spent[stage.stage] += stage.ms
    whole = sum(result.took_ms for result in results)
    ranked = sorted(spent.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{stage} {ms / whole:.0%}" for stage, ms in ranked)
