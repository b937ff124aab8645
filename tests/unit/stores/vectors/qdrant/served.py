"""What the tests of Qdrant on a server have in common."""

from __future__ import annotations

from collections.abc import Callable

from ragstone.core.vectors import VectorPartition
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import DIMENSION, unit_vectors

KEY = "canary-key-4711"
PLACE = VectorPartition("t1", "s1", DIMENSION)
QUERY = unit_vectors(1)[0]

Connect = Callable[..., QdrantProvider]
"""Takes the isolation and options."""


class Naps(list[float]):
    """Sleeps that take no time."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
