"""The collection that benchmarks read, and its vectors, embedded once and kept."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragstone.core.types import Matrix
from ragstone.evaluate.dataset import Dataset, load_dataset
from ragstone.models import build_embedder
from ragstone.models.weights.artefacts import cache_folder
from ragstone.settings.tree import EmbeddingSettings


@dataclass(frozen=True)
class Collection:
    """A labelled data set in memory."""

    dataset: Dataset
    ids: list[str]
    titles: list[str]
    texts: list[str]


@dataclass(frozen=True)
class Vectors:
    """What one model makes of a collection."""

    model: str
    documents: Matrix
    queries: Matrix


def load(folder: Path) -> Collection:
    """Read a BEIR-layout folder."""
    dataset = load_dataset(folder)
    documents = list(dataset.documents())
    return Collection(
        dataset,
        [document.id for document in documents],
        [document.title for document in documents],
        [f"{document.title}\n\n{document.text}" for document in documents],
    )


def vectors(collection: Collection, model: str) -> Vectors:
    """Embedded with a local model, or read from an earlier run."""
    kept = (
        cache_folder(None) / "bench" / f"{collection.dataset.name}-{len(collection.ids)}-{model.replace('/', '_')}.npz"
    )
    if not kept.exists():
        asyncio.run(_embed(collection, model, kept))
    with np.load(kept) as arrays:
        return Vectors(str(arrays["model"]), arrays["documents"], arrays["queries"])


async def _embed(collection: Collection, model: str, kept: Path) -> None:
    embedder = build_embedder(EmbeddingSettings(model=model))
    documents = await embedder.embed(collection.texts, "document")
    queries = await embedder.embed([query.text for query in collection.dataset.queries], "query")
    await embedder.close()
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(".partial.npz")
    np.savez(partial, model=documents.model, documents=documents.vectors, queries=queries.vectors)
    partial.replace(kept)
