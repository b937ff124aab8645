"""Vectors in Chroma: in a folder of its own, in memory, or on a server.

Chroma does the nearest-neighbour search and most filters. Words, fusion and reranking are Ragstone's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ragstone.core.batches import batched
from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, Vector
from ragstone.core.vectors import Capabilities, Health, Isolation, Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import check_dimension, check_isolation, newest_points, real_ids, unit
from ragstone.stores.vectors.chroma.client import ChromaClient, Client
from ragstone.stores.vectors.chroma.filters import (
    Where,
    belongs_to,
    can_translate,
    join_conditions,
    metadata_of,
    payload_of,
    translate,
)

T = TypeVar("T")
Collection = Any
BATCH = 256
PAGE = 10_000
GRAPH = {"space": "cosine", "max_neighbors": 48, "ef_construction": 200, "ef_search": 400}
"""Denser than Chroma's default, which missed one of ten nearest where tenants share a collection."""
DIMENSION = "ragstone:dimension"
"""Chroma learns the dimension from the first vector only, so that it is written down with the collection."""


class ChromaProvider:
    """Implements `core.vectors.VectorProvider`."""

    name = "chroma"
    capabilities = Capabilities(isolation=frozenset({"collection", "filter"}), max_dimension=65_536, max_k=10_000)

    def __init__(self, adapter: Adapter, folder: Path, isolation: Isolation) -> None:
        check_isolation(self.name, isolation, self.capabilities)
        self._shared = isolation == "filter"
        self._chroma = ChromaClient(adapter, folder)

    def can_filter(self, where: Filter) -> bool:
        return can_translate(where)

    async def open(self, partition: VectorPartition) -> None:
        await self._run(partial(self._make, partition))

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        for batch in batched(newest_points(partition, points), BATCH):
            await self._run(partial(self._write, partition, batch))

    async def delete(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> None:
        for batch in batched(self._names(partition, chunk_ids), BATCH):
            await self._within(partition, partial(_delete, names=batch, where=self._own(partition)))

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        check_dimension(partition, len(vector))
        wanted = join_conditions("$and", (self._own(partition) or True, where is None or translate(where)))
        if wanted is False or k < 1:
            return []
        most = min(k, self.capabilities.max_k)
        only = None if wanted is True else wanted
        nearest = _nearest_measured_here if self._shared else _nearest
        return await self._within(partition, partial(nearest, vector=vector, k=most, where=only)) or []

    async def read(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[Point]:
        points: list[Point] = []
        for batch in batched(self._names(partition, chunk_ids), BATCH):
            points += await self._within(partition, partial(_read, names=batch, where=self._own(partition))) or []
        return points

    async def ids(self, partition: VectorPartition) -> AsyncIterator[Sequence[str]]:
        # Chroma pages by position, and deletions by the caller would shift the rest: so all ids are read at once.
        names = await self._within(partition, partial(_all_names, where=self._own(partition))) or []
        for page in batched(names, PAGE):
            yield [_chunk_id(name) for name in page]

    async def count(self, partition: VectorPartition) -> int:
        return await self._within(partition, partial(_count, where=self._own(partition))) or 0

    async def drop(self, partition: VectorPartition) -> None:
        if self._shared:
            await self._within(partition, partial(_delete, names=None, where=belongs_to(partition)))
        else:
            await self._run(partial(self._drop, partition))

    async def health(self) -> Health:
        return Health(await self._run(_version), self._chroma.address)

    async def close(self) -> None:
        await asyncio.to_thread(self._chroma.close)

    async def _run(self, work: Callable[[Client], T]) -> T:
        return await asyncio.to_thread(self._chroma.run, work)

    async def _within(self, partition: VectorPartition, work: Callable[[Collection], T]) -> T | None:
        """Return the result of `work` for the collection of a partition; None where there is none."""
        return await self._run(partial(_if_there, name=self._collection(partition), work=work))

    def _collection(self, partition: VectorPartition) -> str:
        if self._shared:
            return f"rs_d{partition.dimension}"
        space, _, source_type = partition.space.partition("_")
        return f"{source_type or 'rs'}_{partition.tenant_id}_{space}"

    def _own(self, partition: VectorPartition) -> Where | None:
        return belongs_to(partition) if self._shared else None

    def _names(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[str]:
        return [self._name(partition, chunk_id) for chunk_id in real_ids(chunk_ids)]

    def _name(self, partition: VectorPartition, chunk_id: str) -> str:
        return f"{partition.tenant_id}:{partition.space}:{chunk_id}" if self._shared else chunk_id

    def _make(self, partition: VectorPartition, client: Client) -> Collection:
        model = client.create_collection(
            self._collection(partition),
            configuration={"hnsw": GRAPH},
            metadata={DIMENSION: partition.dimension},
            get_or_create=True,
        )
        check_dimension(partition, model.metadata[DIMENSION], what="a collection")
        return _open_collection(client, model)

    def _drop(self, partition: VectorPartition, client: Client) -> None:
        _if_there(client, name=self._collection(partition), work=lambda held: client.delete_collection(held.name))
        self._chroma.tidy()

    def _write(self, partition: VectorPartition, points: Sequence[Point], client: Client) -> None:
        held = self._make(partition, client)
        names = [self._name(partition, point.chunk_id) for point in points]
        metadatas = {name: metadata_of(partition, point) for name, point in zip(names, points, strict=True)}
        # Chroma adds metadata to what is there: fields of an earlier point of that id are taken out by name.
        before = held.get(names, include=["metadatas"])
        for name, metadata in zip(before["ids"], before["metadatas"], strict=True):
            metadatas[name] = dict.fromkeys(metadata) | metadatas[name]
        vectors = np.stack([unit(point.vector, f"chunk {point.chunk_id}") for point in points])
        held.upsert(names, embeddings=vectors, metadatas=list(metadatas.values()))


def _open_collection(client: Client, model: Any) -> Collection:
    from chromadb.api.models.Collection import Collection

    # The default embedding function would fetch a model.
    return Collection(client, model, embedding_function=None)


def _if_there(client: Client, *, name: str, work: Callable[[Collection], T]) -> T | None:
    from chromadb.errors import NotFoundError

    try:
        return work(_open_collection(client, client.get_collection(name)))
    except NotFoundError:
        return None


def _delete(held: Collection, *, names: Sequence[str] | None, where: Where | None) -> None:
    held.delete(names, where=where)


def _nearest(held: Collection, *, vector: Vector, k: int, where: Where | None) -> list[Candidate]:
    found = held.query([unit(vector)], n_results=k, where=where, include=["distances"])
    return [
        Candidate(_chunk_id(name), min(1.0, max(-1.0, 1.0 - distance)))
        for name, distance in zip(found["ids"][0], found["distances"][0], strict=True)
    ]


def _nearest_measured_here(held: Collection, *, vector: Vector, k: int, where: Where | None) -> list[Candidate]:
    """Return the nearest with scores of our own.

    Chroma's differ in the last digit with where it keeps a vector, and that depends on what other tenants write.
    """
    asked = unit(vector)
    found = held.query([asked], n_results=k, where=where, include=["embeddings"])
    rows = np.asarray(found["embeddings"][0], np.float64).reshape(-1, len(asked))
    scores = rows @ np.asarray(asked, np.float64)
    names = map(_chunk_id, found["ids"][0])
    return sorted(map(Candidate, names, np.clip(scores, -1.0, 1.0).tolist()), key=lambda candidate: -candidate.score)


def _read(held: Collection, *, names: Sequence[str], where: Where | None) -> list[Point]:
    found = held.get(names, where=where, include=["embeddings", "metadatas"])
    return [
        Point(_chunk_id(name), np.asarray(row, np.float32), payload_of(metadata))
        for name, row, metadata in zip(found["ids"], found["embeddings"], found["metadatas"], strict=True)
    ]


def _all_names(held: Collection, *, where: Where | None) -> list[str]:
    return list(held.get(where=where, include=[])["ids"])


def _count(held: Collection, *, where: Where | None) -> int:
    return int(held.count()) if where is None else len(_all_names(held, where=where))


def _version(client: Client) -> str:
    client.heartbeat()
    return str(client.get_version())


def _chunk_id(name: str) -> str:
    return name[-32:]
