"""A store filled without a model: Zipf text and clustered random vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ragstone.core.ids import content_hash, document_id
from ragstone.core.model_types import EmbeddingModel, Embeddings
from ragstone.core.types import Chunk, Matrix, NewVersion, Role
from ragstone.language.analyzer import analyze
from ragstone.stores.factory import Stores

DIMENSION = 384
WORDS = 120
VOCABULARY = 50_000
PER_DOCUMENT = 10
MODEL = EmbeddingModel("synthetic", DIMENSION, 512)


class SyntheticText:
    """Text whose word frequencies fall off like those of a language."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        weights = 1.0 / np.arange(1, VOCABULARY + 1)
        self._weights = weights / weights.sum()

    def words(self, count: int) -> str:
        return " ".join(_word(n) for n in self._random.choice(VOCABULARY, count, p=self._weights))

    def query(self) -> str:
        """Eight words of the less common half of a text."""
        picked = self._random.choice(VOCABULARY, 40, p=self._weights)
        return " ".join(_word(n) for n in sorted(picked)[-8:])


def _word(number: int) -> str:
    """A made-up word of letters only: four syllables that no stemmer touches."""
    syllables = []
    for _ in range(4):
        number, rest = divmod(number, 20)
        syllables.append("bcdfghjklmnpqrtvwxzk"[rest] + "aeiou"[rest % 5])
    return "".join(syllables)


class SyntheticEmbedder:
    """Vectors at no cost: of the text's hash, near one of a few hundred centres."""

    model = MODEL

    def __init__(self) -> None:
        random = np.random.default_rng(7)
        self._centres = random.normal(size=(256, DIMENSION)).astype(np.float32)

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        return Embeddings(self.vectors(texts), MODEL.id)

    def vectors(self, texts: Sequence[str]) -> Matrix:
        seeds = [int(content_hash(text)[:8], 16) for text in texts]
        noise = np.stack([np.random.default_rng(seed).normal(size=DIMENSION) for seed in seeds])
        rows = self._centres[np.array(seeds) % 256] + 1.5 * noise
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    async def close(self) -> None:
        """Nothing is held."""


async def fill(
    stores: Stores, chunks: int, seed: int = 1, *, tenant: str = "default", model: EmbeddingModel = MODEL
) -> float:
    """Put this many chunks into a store, ten to a document, as if a model had embedded them; the store's seconds."""
    text, embedder = SyntheticText(seed), SyntheticEmbedder()
    spent = 0.0
    for first in range(0, chunks // PER_DOCUMENT, 100):
        numbers = range(first, min(first + 100, chunks // PER_DOCUMENT))
        versions = [_version(number, text, embedder, tenant) for number in numbers]
        started = time.perf_counter()
        async with stores.ledger.transaction(tenant) as tx:
            kb = await tx.open_space(await tx.open_kb("default"), model.id, DIMENSION)
            staged = await tx.stage_all(kb, versions)
        made = [(version.document_id, n) for version, n in zip(versions, staged, strict=True)]
        await stores.ledger.prepare(tenant, kb, made)
        async with stores.ledger.transaction(tenant) as tx:
            await tx.activate_all(kb, made)
        spent += time.perf_counter() - started
    started = time.perf_counter()
    await stores.ledger.clean_up(tenant)  # which makes the indexes that a store builds when it has enough
    return spent + time.perf_counter() - started


def _version(number: int, text: SyntheticText, embedder: SyntheticEmbedder, tenant: str) -> NewVersion:
    parts = [text.words(WORDS) for _ in range(PER_DOCUMENT)]
    chunks, start = [], 0
    for index, part in enumerate(parts):
        chunks.append(Chunk(index, part, start, start + len(part), tokens=WORDS))
        start += len(part) + 2
    whole = "\n\n".join(parts)
    name = f"synthetic-{number}"
    return NewVersion(
        document_id=document_id(tenant, "default", "bench", name),
        source="bench",
        external_id=name,
        uri=name,
        title=name,
        content_hash=content_hash(whole),
        text=whole,
        media_type="text/plain",
        metadata={"shelf": number % 100},
        recipe="bench",
        modified_at=None,
        chunks=tuple(chunks),
        terms=tuple(" ".join(analyze(part)) for part in parts),
        vectors=embedder.vectors(parts),
    )
