"""Qdrant: a server, the client's local mode on a folder, or the engine in this process."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from ragstone.core.batches import batched, batched_by_weight
from ragstone.core.errors import InputError, SettingsError, StoreError
from ragstone.core.filters import Filter
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Candidate, Vector
from ragstone.core.vectors import Capabilities, Health, Isolation, Point, VectorPartition, Words
from ragstone.fetch.calls import Sleep
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import (
    check_dimension,
    check_isolation,
    check_options,
    newest_points,
    real_ids,
    seconds_option,
)
from ragstone.stores.vectors.qdrant.engine import ClientEngine, CollectionMissing, Form, LocalCalls, QdrantEngine
from ragstone.stores.vectors.qdrant.filters import Condition, all_of, can_translate, equals, translate
from ragstone.stores.vectors.qdrant.points import belongs, collection_of, physical_id, to_point, to_stored
from ragstone.stores.vectors.qdrant.server import ServerCalls

T = TypeVar("T")
BATCH = 256
BATCH_NUMBERS = 1_000_000
"""The most numbers in one request: a server takes 32 MB, and a number may be 20 characters."""
PAGE = 1000
OPTIONS = ("engine", "exact", "grpc_port", "prefer_grpc", "timeout")
ISOLATIONS: frozenset[Isolation] = frozenset({"collection", "namespace", "filter"})


REBUILD = "a repair builds it again from the ledger, and nothing is lost"


class QdrantProvider:
    """Implements `core.vectors.WordProvider`; `words` says whether it is to hold words beside the vectors."""

    name = "qdrant"

    def __init__(
        self, adapter: Adapter, folder: Path, isolation: Isolation, *, words: bool = False, sleep: Sleep = asyncio.sleep
    ) -> None:
        check_options(adapter, OPTIONS)
        if adapter.dsn is not None:
            raise SettingsError("store.vectors.dsn means nothing to qdrant", hint="give its address as url")
        self._engine = _open_server(adapter, sleep) if adapter.url else _open_embedded(adapter, adapter.path or folder)
        self.capabilities = Capabilities(
            isolation=ISOLATIONS, max_dimension=65_536, max_k=10_000, exact=self._engine.exact, sparse=words
        )
        check_isolation(self.name, isolation, self.capabilities)
        if words and isolation != "collection":
            raise SettingsError(
                f"store.lexical: qdrant cannot keep tenants apart by '{isolation}': "
                "Qdrant would weigh a tenant's words by how often all tenants use them",
                hint="set store.isolation: collection, or another store.lexical",
            )
        self._isolation = isolation
        self._words = words

    def can_filter(self, where: Filter) -> bool:
        return can_translate(where)

    async def open(self, partition: VectorPartition) -> None:
        collection = self._collection(partition)
        await self._engine.create(collection, Form(partition.dimension, self._words), self._isolation)
        form = await self._engine.form(collection)
        if form.words != self._words:
            raise StoreError(self._misfit(collection, form), hint=REBUILD, remedy=Remedy(Action.REPAIR_STORES))
        check_dimension(partition, form.dimension, what="an index")

    async def misfit(self, partition: VectorPartition) -> str:
        collection = self._collection(partition)
        try:
            form = await self._engine.form(collection)
        except CollectionMissing:
            return ""
        return self._misfit(collection, form) if form.words != self._words else ""

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        collection = self._collection(partition)
        newest = newest_points(partition, points, wordless=not self._words)
        for batch in batched_by_weight(newest, _count_numbers, most=BATCH, heaviest=BATCH_NUMBERS):
            try:
                stored = [to_stored(partition, point) for point in batch]
                await self._engine.upsert(collection, stored, words=self._words)
            except CollectionMissing:
                raise StoreError(
                    f"Qdrant has no collection {collection}: someone deleted it",
                    hint=REBUILD,
                    remedy=Remedy(Action.REPAIR_STORES),
                ) from None

    async def delete(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> None:
        with suppress(CollectionMissing):
            for batch in batched(real_ids(chunk_ids), PAGE):
                ids = [physical_id(partition, chunk_id) for chunk_id in batch]
                await self._engine.delete(self._collection(partition), ids, self._scope(partition))

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        check_dimension(partition, len(vector))
        if not np.isfinite(vector).all():
            raise InputError("the vector of the query holds numbers that are not finite")
        found = await self._search(partition, vector.tolist(), k, where)
        # Digits beyond those of the vectors are noise, and would tell equal vectors apart.
        scores = np.clip(np.array([score for _, score in found], np.float32), -1, 1).tolist()
        return [Candidate(name, score) for (name, _), score in zip(found, scores, strict=True)]

    async def search_words(
        self, partition: VectorPartition, words: Words, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        if not words.numbers:
            return []
        return [Candidate(name, score) for name, score in await self._search(partition, words, k, where)]

    async def read(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[Point]:
        points: list[Point] = []
        with suppress(CollectionMissing):
            for batch in batched(real_ids(chunk_ids), BATCH):
                ids = [physical_id(partition, chunk_id) for chunk_id in batch]
                records = await self._engine.retrieve(self._collection(partition), ids)
                points += [to_point(record) for record in records if belongs(partition, record.payload)]
        return points

    async def ids(self, partition: VectorPartition) -> AsyncIterator[Sequence[str]]:
        offset = None
        while True:
            try:
                page = await self._engine.page(self._collection(partition), self._scope(partition), PAGE, offset)
            except CollectionMissing:
                return
            yield page.chunk_ids
            offset = page.offset
            if offset is None:
                return

    async def count(self, partition: VectorPartition) -> int:
        with suppress(CollectionMissing):
            return await self._engine.count(self._collection(partition), self._scope(partition))
        return 0

    async def drop(self, partition: VectorPartition) -> None:
        collection, scope = self._collection(partition), self._scope(partition)
        with suppress(CollectionMissing):
            if scope is None:
                await self._engine.drop(collection)
            else:
                await self._engine.delete(collection, where=scope)

    async def health(self) -> Health:
        return await self._engine.health()

    async def close(self) -> None:
        await self._engine.close()

    async def _search(
        self, partition: VectorPartition, query: list[float] | Words, k: int, where: Filter | None
    ) -> list[tuple[str, float]]:
        within = all_of([self._scope(partition) or True, translate(where) if where else True])
        k = min(k, self.capabilities.max_k)
        if k < 1 or within is False:
            return []
        condition = None if within is True else within
        with suppress(CollectionMissing):
            collection = self._collection(partition)
            return await self._engine.search(collection, query, k, condition, words=self._words)
        return []

    def _misfit(self, collection: str, form: Form) -> str:
        made, wanted = ("with words", "without") if form.words else ("without words", "with them")
        return f"the collection {collection} in Qdrant was made {made}, and store.lexical wants it {wanted}"

    def _collection(self, partition: VectorPartition) -> str:
        return collection_of(partition) if self._isolation == "collection" else f"rs_d{partition.dimension}"

    def _scope(self, partition: VectorPartition) -> Condition | None:
        """Return the condition that keeps a call within its partition where several share a collection."""
        if self._isolation == "collection":
            return None
        return {"must": [equals("tenant_id", partition.tenant_id), equals("space", partition.space)]}


def _count_numbers(point: Point) -> int:
    # A word is a number and a weight.
    return len(point.vector) + (2 * len(point.words.numbers) if point.words else 0)


def _open_server(adapter: Adapter, sleep: Sleep) -> QdrantEngine:
    _need("qdrant_client")
    if adapter.path is not None or "engine" in adapter.options:
        raise SettingsError(
            "store.vectors names both a Qdrant server and one in this process",
            hint="leave out url, or leave out path and options.engine",
        )
    calls = ServerCalls(
        adapter,
        timeout=seconds_option(adapter, "timeout", 30.0),
        prefer_grpc=_choice(adapter, "prefer_grpc", False, (True, False)),
        grpc_port=_choice(adapter, "grpc_port", 6334, range(1, 65_536)),
        sleep=sleep,
    )
    return ClientEngine(calls, asks_for_exact=_choice(adapter, "exact", False, (True, False)))


def _open_embedded(adapter: Adapter, folder: Path) -> QdrantEngine:
    for name in adapter.options:
        if name != "engine":
            raise SettingsError(
                f"store.vectors.options.{name} is for a Qdrant server, and store.vectors.url names none",
                hint="set the url, or leave the option out",
            )
    if adapter.api_key is not None:
        raise SettingsError("store.vectors.api_key is for a Qdrant server", hint="set store.vectors.url")
    if _choice(adapter, "engine", "local", ("local", "edge")) == "edge":
        _need("qdrant_edge")
        from ragstone.stores.vectors.qdrant.edge import EdgeEngine

        return EdgeEngine(folder)
    _need("qdrant_client")
    return ClientEngine(LocalCalls(folder), exact=True)


def _choice(adapter: Adapter, name: str, default: T, choices: Collection[T]) -> T:
    value = adapter.options.get(name, default)
    if type(value) is not type(default) or value not in choices:
        known = "a port" if isinstance(choices, range) else " or ".join(str(choice).lower() for choice in choices)
        raise SettingsError(f"store.vectors.options.{name} is {value!r:.40}", hint=f"give {known}")
    chosen: T = value
    return chosen


def _need(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        extra = "pip install qdrant-edge-py" if library == "qdrant_edge" else "pip install 'ragstone[qdrant]'"
        raise SettingsError(f"store.vectors needs {library}, which is not installed", hint=extra)
