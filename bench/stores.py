"""Every store with the same synthetic chunks, as ratios to the embedded one: the model is not what is measured."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.report import Row, percentiles, resident_mb, timed
from bench.searching import pipeline_over
from bench.synthetic import SyntheticEmbedder, SyntheticText, fill
from ragstone.core.filters import parse_filter
from ragstone.query.context import SearchRequest
from ragstone.settings.tree import Settings
from ragstone.stores.factory import Stores, open_stores

ROUNDS = 60
KINDS = ("sqlite", "postgres", "chroma", "qdrant", "milvus", "milvus-lite")


@dataclass(frozen=True)
class Measured:
    """Seconds to take in, milliseconds (p50) to search, megabytes of this process."""

    ingest_s: float
    dense_ms: float
    lexical_ms: float
    hybrid_ms: float
    filtered_ms: float
    memory_mb: float


def run(chunks: int) -> list[Row]:
    """Each store in a process of its own, one after the other; the embedded one first."""
    part = f"stores {chunks // 1000}k"
    rows, base = [], None
    for kind in KINDS:
        print(f"  {kind} …", file=sys.stderr)
        command = [sys.executable, "-m", "bench.stores", kind, str(chunks)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        measured = Measured(**json.loads(done.stdout.splitlines()[-1]))
        base = base or measured
        rows.append(Row(part, kind, _compared(measured, base)))
        # A run takes the better part of an hour: what it has found so far is not lost with it.
        print(f"  {kind}: {rows[-1].value}", file=sys.stderr)
    return rows


def _compared(measured: Measured, base: Measured) -> str:
    if measured is base:
        return (
            f"ingest {base.ingest_s:.1f} s, dense {base.dense_ms:.1f} ms, BM25 {base.lexical_ms:.1f} ms, "
            f"hybrid {base.hybrid_ms:.1f} ms, 1 % filter {base.filtered_ms:.1f} ms, {base.memory_mb:.0f} MB"
        )
    return (
        f"ingest {measured.ingest_s / base.ingest_s:.1f}×, dense {measured.dense_ms / base.dense_ms:.1f}×, "
        f"BM25 {measured.lexical_ms / base.lexical_ms:.1f}×, hybrid {measured.hybrid_ms / base.hybrid_ms:.1f}×, "
        f"1 % filter {measured.filtered_ms / base.filtered_ms:.1f}×, memory {measured.memory_mb / base.memory_mb:.1f}×"
    )


@contextmanager
def settings_of(kind: str, folder: Path) -> Iterator[Settings]:
    """Settings for a store of this kind, with its server running if it needs one."""
    data = {"data_dir": folder / "data"}
    if kind == "postgres":
        from tests.conformance.postgres_server import server

        ledger = {"kind": "postgres", "dsn": server(18).database(folder)}
        yield Settings.model_validate({**data, "store": {"ledger": ledger}})
    elif kind == "milvus":
        from tests.conformance.milvus_server import running

        with running(folder / "server") as url:
            yield Settings.model_validate({**data, "store": {"vectors": {"kind": "milvus", "url": url}}})
    else:
        yield Settings.model_validate({**data, "store": {"vectors": kind.removesuffix("-lite")}})


async def measure(settings: Settings, chunks: int) -> Measured:
    stores = open_stores(settings)
    ingest = await fill(stores, chunks)
    try:
        searches = await _searches(stores)
    finally:
        await stores.close()
    return Measured(ingest, *searches, resident_mb())


async def _searches(stores: Stores) -> tuple[float, float, float, float]:
    kb = await stores.ledger.of("default").kb("default")
    assert kb is not None
    embedder, text = SyntheticEmbedder(), SyntheticText(99)
    queries = [text.query() for _ in range(ROUNDS)]
    vectors = embedder.vectors(queries)
    pipeline = pipeline_over(stores, embedder)
    shelf = parse_filter({"shelf": 7})

    async def dense(n: int) -> object:
        return await stores.vectors.search("default", kb, vectors[n % ROUNDS], 100)

    async def lexical(n: int) -> object:
        return await stores.lexical.search("default", kb, queries[n % ROUNDS], 100)

    async def hybrid(n: int) -> object:
        request = SearchRequest(queries[n % ROUNDS], 10, "balanced", "hybrid", "zscore", 100)
        return await pipeline.search("default", kb, request)

    async def filtered(n: int) -> object:
        return await stores.vectors.search("default", kb, vectors[n % ROUNDS], 10, shelf)

    p50 = [percentiles(await timed(one, ROUNDS, warm=ROUNDS))[0] for one in (dense, lexical, hybrid, filtered)]
    return p50[0], p50[1], p50[2], p50[3]


def main() -> None:
    kind, chunks = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as place, settings_of(kind, Path(place)) as settings:
        print(json.dumps(asdict(asyncio.run(measure(settings, chunks)))))


if __name__ == "__main__":
    main()
