"""The embedder against SentenceTransformer, and the whole ingest against the bare embedder."""

from __future__ import annotations

import asyncio
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from bench.data import load
from bench.report import Row, ratio_row
from ragstone.core.settings import EmbeddingSettings, Settings
from ragstone.core.types import Item
from ragstone.models import build_embedder
from ragstone.models.weights.folder import ModelFolder
from ragstone.wiring import open_engine

PEER = "all-MiniLM-L6-v2"
TEXTS = 768
SHORT = 130


def ingest(folder: Path) -> list[Row]:
    """Chunks per second through the whole pipeline, as a share of what the model alone does."""
    return asyncio.run(_ingest(load(folder).texts[:TEXTS]))


async def _ingest(texts: list[str]) -> list[Row]:
    embedder = build_embedder(EmbeddingSettings())
    await embedder.embed(texts[:64], "document")
    rates, bare = [], []
    for turn in range(2):
        half = texts[turn::2]
        started = time.perf_counter()
        await embedder.embed(half, "document")
        bare.append(len(half) / (time.perf_counter() - started))
    await embedder.close()
    with tempfile.TemporaryDirectory() as place:
        async with open_engine(Settings(data_dir=Path(place))) as engine:
            await engine.ingest_items([_item(n, text) for n, text in enumerate(texts[:64])], kb="warm")
            for turn in range(2):
                half = texts[turn::2]
                started = time.perf_counter()
                report = await engine.ingest_items(
                    [_item(n, text) for n, text in enumerate(half)], kb=f"run{turn}"
                )
                rates.append(len(half) / (time.perf_counter() - started))
    share = sum(rates) / sum(bare)
    return [
        Row("ingest", "bare embedder", f"{sum(bare) / 2:.0f} abstracts/s"),
        Row("ingest", "whole pipeline", f"{sum(rates) / 2:.0f} abstracts/s, {report.chunks} chunks"),
        ratio_row("ingest", "pipeline / bare embedder", share, at_least=0.85),
    ]


def _item(n: int, text: str) -> Item:
    return Item("bench", str(n), str(n), text)


def against_sentence_transformers(folder: Path) -> list[Row]:
    """Abstracts per second of both, same weights, same texts, batch 32."""
    if not find_spec("sentence_transformers"):
        return [Row("embedder", "against SentenceTransformer", "not measured: make peers installs it")]
    from sentence_transformers import SentenceTransformer

    from ragstone.models.artefacts import cache_folder
    from ragstone.models.weights import find_weights

    # Short enough for the model's window: beyond it the peer cuts off what Ragstone goes on reading.
    texts = [" ".join(text.split()[:SHORT]) for text in load(folder).texts[: TEXTS // 2]]
    weights = find_weights(PEER, path=None, cache=cache_folder(None))
    assert isinstance(weights, ModelFolder)
    peer = SentenceTransformer(str(weights.path), device="cpu")
    peer.encode(texts[:32], batch_size=32)
    started = time.perf_counter()
    peer.encode(texts, batch_size=32)
    theirs = len(texts) / (time.perf_counter() - started)
    ours = asyncio.run(_ours(texts))
    return [
        Row("embedder", f"SentenceTransformer fp32, {PEER}", f"{theirs:.0f} abstracts/s"),
        Row("embedder", f"Ragstone, {PEER}", f"{ours:.0f} abstracts/s"),
        ratio_row("embedder", "Ragstone / SentenceTransformer", ours / theirs, at_least=2.0),
    ]


async def _ours(texts: list[str]) -> float:
    embedder = build_embedder(EmbeddingSettings(model=PEER))
    await embedder.embed(texts[:32], "document")
    started = time.perf_counter()
    await embedder.embed(texts, "document")
    rate = len(texts) / (time.perf_counter() - started)
    await embedder.close()
    return rate
