"""The embedder against SentenceTransformer, and the whole ingest against the bare embedder."""

from __future__ import annotations

import asyncio
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from bench.data import load
from bench.hub_folder import write_hub_folder
from bench.report import Row, ratio_row
from ragstone.core.types import Item
from ragstone.engine.engine import open_engine
from ragstone.models import build_embedder
from ragstone.models.weights import find_weights
from ragstone.models.weights.artefacts import cache_folder
from ragstone.models.weights.folder import ModelFolder
from ragstone.models.weights.packages import GranitePack
from ragstone.settings.tree import EmbeddingSettings, Settings
from ragstone.testing.workspaces import workspace_of

PLAIN = "all-MiniLM-L6-v2"
"""A model whose weights come as float32, beside the default one, whose weights come as int8."""
TEXTS = 768
SHORT = 110
TURNS = 4


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
            await workspace_of(engine).documents.ingest_items(
                [_item(n, text) for n, text in enumerate(texts[:64])], kb="warm"
            )
            for turn in range(2):
                half = texts[turn::2]
                started = time.perf_counter()
                report = await workspace_of(engine).documents.ingest_items(
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
    # Short enough for either model's window: beyond it the peer cuts off what Ragstone goes on reading.
    texts = [" ".join(text.split()[:SHORT]) for text in load(folder).texts[: TEXTS // 2]]
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for model in (EmbeddingSettings().model, PLAIN):
            weights = find_weights(model, path=None, cache=cache_folder(None))
            if isinstance(weights, ModelFolder):
                rows += asyncio.run(_race(model, weights.path, texts))
            else:
                assert isinstance(weights, GranitePack)
                rows += asyncio.run(_race(model, write_hub_folder(weights, Path(place)), texts))
    return rows


async def _race(model: str, folder: Path, texts: list[str]) -> list[Row]:
    """In turns, best of each: a busy moment of the machine must not decide."""
    from sentence_transformers import SentenceTransformer

    peer, embedder = (SentenceTransformer(str(folder), device="cpu"), build_embedder(EmbeddingSettings(model=model)))
    theirs, own = [], []
    peer.encode(texts[:32], batch_size=32)
    await embedder.embed(texts[:32], "document")
    for turn in range(TURNS):
        share = texts[turn::TURNS]
        started = time.perf_counter()
        expected = peer.encode(share, batch_size=32)
        theirs.append(len(share) / (time.perf_counter() - started))
        started = time.perf_counter()
        made = await embedder.embed(share, "document")
        own.append(len(share) / (time.perf_counter() - started))
    await embedder.close()
    likeness = (made.vectors * expected).sum(axis=1).min()
    return [
        Row("embedder", f"SentenceTransformer fp32, {model}", f"{max(theirs):.0f} abstracts/s"),
        Row("embedder", f"Ragstone, {model}", f"{max(own):.0f} abstracts/s, cosine to it ≥ {likeness:.4f}"),
        ratio_row("embedder", f"Ragstone / SentenceTransformer, {model}", max(own) / max(theirs), at_least=2.0),
    ]
