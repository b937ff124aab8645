"""Whether a Space still holds what its model makes of the text: some vectors are made anew and compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ragstone.core.errors import ModelMismatch
from ragstone.core.ids import opaque_id
from ragstone.core.protocols import Embedder
from ragstone.core.spaces import SpaceBook, Stored
from ragstone.core.types import KnowledgeBase, Space

ALIKE = 0.99
"""The cosine of two vectors of one text by one model. Runtimes and float16 cost 0.0003; another model far more."""
BATCH = 128


@dataclass(frozen=True, slots=True)
class Freshness:
    """What a sample of stored vectors says about all of them."""

    sampled: int = 0
    differing: int = 0
    """Those that the model would make otherwise today."""
    lowest: float | None = None
    """The cosine of the one that differs most."""

    @property
    def is_stale(self) -> bool:
        return self.differing > 0


async def freshness(
    book: SpaceBook, embedder: Embedder, tenant: str, kb: KnowledgeBase, space: Space, count: int
) -> Freshness:
    """Embed the text of some chunks, drawn by lot, and compare with what is stored for them."""
    drawn = await book.sample(tenant, kb, space, count, after=opaque_id())
    cosines: list[float] = []
    for batch in _batches(drawn):
        made = await embedder.embed([one.text for one in batch], "document")
        if made.model != space.model or made.vectors.shape[1] != space.dimension:
            raise ModelMismatch(
                f"{made.model} answered where the Space is of {space.model}",
                hint="make that model available: until then nobody can say whether its vectors are stale",
            )
        fresh, stored = made.vectors, np.stack([one.vector for one in batch])
        lengths = np.linalg.norm(fresh, axis=1) * np.linalg.norm(stored, axis=1)
        # What the model gives no vector for today says nothing about the one it gave before.
        told = lengths > 0
        cosines += (np.sum(fresh * stored, axis=1)[told] / lengths[told]).tolist()
    differing = sum(cosine < ALIKE for cosine in cosines)
    return Freshness(len(cosines), differing, min(cosines, default=None))


def _batches(drawn: Sequence[Stored]) -> Iterator[Sequence[Stored]]:
    ordered = sorted(drawn, key=lambda one: len(one.text))
    for start in range(0, len(ordered), BATCH):
        yield ordered[start : start + BATCH]
