"""Vectors in the memory of this process: an exact scan that forgets everything when it is closed.

For tests, trials and collections that may be thrown away. The ledger holds all of it, so that every start rebuilds it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from copy import deepcopy
from itertools import count
from pathlib import Path

import numpy as np

from ragstone.core.batches import batched
from ragstone.core.errors import SettingsError
from ragstone.core.filters import Filter, matches
from ragstone.core.types import Candidate, Vector
from ragstone.core.vectors import Capabilities, Health, Isolation, Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import check_dimension, check_isolation, check_options, names_reserved, unit
from ragstone.stores.vectors.sqlite import VectorMatrix

PAGE = 1000


class MemoryProvider:
    """Implements `core.vectors.VectorProvider`. Partitions never share anything, whatever the isolation is called."""

    name = "memory"
    capabilities = Capabilities(
        isolation=frozenset({"collection", "namespace", "filter"}), max_dimension=65_536, max_k=1_000_000, exact=True
    )

    def __init__(self, adapter: Adapter, folder: Path, isolation: Isolation) -> None:
        check_isolation(self.name, isolation, self.capabilities)
        check_options(adapter, ())
        if adapter.url or adapter.path or adapter.dsn:
            raise SettingsError(
                "store.vectors: memory is in this process and takes no address",
                hint="leave out path, url and dsn, or choose another kind",
            )
        self._partitions: dict[tuple[str, str], _MemoryPartition] = {}
        self._lock = threading.Lock()

    def can_filter(self, where: Filter) -> bool:
        return not names_reserved(where)

    async def open(self, partition: VectorPartition) -> None:
        with self._lock:
            stored = self._partitions.setdefault((partition.tenant_id, partition.space), _MemoryPartition(partition))
        check_dimension(stored.partition, partition.dimension, what="an index")

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        for point in points:
            check_dimension(partition, len(point.vector))
        await self.open(partition)
        with self._lock:
            self._partitions[partition.tenant_id, partition.space].put(points)

    async def delete(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> None:
        with self._lock:
            self._partition(partition).remove(chunk_ids)

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        check_dimension(partition, len(vector))
        # A scan takes milliseconds, and a filter over many payloads more: others should not wait for it.
        return await asyncio.to_thread(self._search, partition, vector, min(k, self.capabilities.max_k), where)

    async def read(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[Point]:
        with self._lock:
            points = self._partition(partition).points
            return [deepcopy(points[chunk_id]) for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in points]

    async def ids(self, partition: VectorPartition) -> AsyncIterator[Sequence[str]]:
        with self._lock:
            known = list(self._partition(partition).points)
        for page in batched(known, PAGE):
            yield page

    async def count(self, partition: VectorPartition) -> int:
        with self._lock:
            return len(self._partition(partition).points)

    async def drop(self, partition: VectorPartition) -> None:
        with self._lock:
            self._partitions.pop((partition.tenant_id, partition.space), None)

    async def health(self) -> Health:
        with self._lock:
            points = sum(len(stored.points) for stored in self._partitions.values())
        return Health(f"numpy {np.__version__}", f"{points} vectors in this process")

    async def close(self) -> None:
        with self._lock:
            self._partitions.clear()

    def _search(self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None) -> list[Candidate]:
        with self._lock:
            return self._partition(partition).nearest(unit(vector), k, where)

    def _partition(self, partition: VectorPartition) -> _MemoryPartition:
        return self._partitions.get((partition.tenant_id, partition.space)) or _MemoryPartition(partition)


class _MemoryPartition:
    """The points of one partition. Its owner locks."""

    def __init__(self, partition: VectorPartition) -> None:
        self.partition = partition
        self.points: dict[str, Point] = {}
        self._numbers: dict[str, int] = {}
        self._next = count()
        self._matrix = VectorMatrix(partition.dimension)

    def put(self, points: Sequence[Point]) -> None:
        newest = {
            point.chunk_id: Point(
                point.chunk_id, unit(point.vector, f"chunk {point.chunk_id}"), deepcopy(dict(point.payload))
            )
            for point in points
        }
        if not newest:
            return
        numbers = [self._numbers.setdefault(chunk_id, next(self._next)) for chunk_id in newest]
        self._matrix.put(numbers, list(newest), np.stack([point.vector for point in newest.values()]))
        self.points |= newest

    def remove(self, chunk_ids: Sequence[str]) -> None:
        known = [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in self.points]
        self._matrix.remove(self._numbers.pop(chunk_id) for chunk_id in known)
        for chunk_id in known:
            del self.points[chunk_id]

    def nearest(self, vector: Vector, k: int, where: Filter | None) -> list[Candidate]:
        if where is None:
            return self._matrix.nearest(vector, k)
        allowed = [self._numbers[chunk_id] for chunk_id, point in self.points.items() if matches(where, point.payload)]
        return self._matrix.nearest(vector, k, np.array(allowed, np.int64))
