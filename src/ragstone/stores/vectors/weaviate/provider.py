"""Vectors in Weaviate. In its GraphQL, everything that varies is written by `literal`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from ragstone.core.batches import batched
from ragstone.core.errors import ModelMismatch, StoreError
from ragstone.core.filters import Filter
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Candidate, Json, Vector
from ragstone.core.vectors import Capabilities, Health, Isolation, Point, VectorPartition
from ragstone.fetch.calls import Sleep
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import (
    check_dimension,
    check_isolation,
    check_options,
    newest_points,
    real_ids,
    unit,
)
from ragstone.stores.vectors.rest import numbers
from ragstone.stores.vectors.weaviate.schema import (
    SLOTS,
    between,
    can_translate,
    class_definition,
    class_name,
    dimension_of,
    object_of,
    one_of,
    passing,
    plain,
    point_of,
    within,
)
from ragstone.stores.vectors.weaviate.server import ClassTenant, WeaviateServer

VALUES = {"valueTextArray": "valueText"}
"""Fields that GraphQL names otherwise than REST does."""


def get_query(
    name: str, fields: str, *, tenant: str, where: Json, limit: int, vector: Sequence[float] | None = None
) -> str:
    """Return a query for objects of a class: the nearest to a vector, or any."""
    given: dict[str, Any] = {"limit": limit, "where": where}
    if vector is not None:
        given["nearVector"] = {"vector": list(vector)}
    return f"{{ Get {{ {name}{_arguments(given, tenant)} {{ {fields} }} }} }}"


def count_query(name: str, *, tenant: str, where: Json) -> str:
    """Return a query that counts the objects of a class."""
    return f"{{ Aggregate {{ {name}{_arguments({'where': where}, tenant)} {{ meta {{ count }} }} }} }}"


def _arguments(given: dict[str, Any], tenant: str) -> str:
    if tenant:
        given = {"tenant": tenant} | given
    return "(" + ", ".join(f"{key}: {literal(value)}" for key, value in given.items()) + ")"


def literal(value: Json, key: str = "") -> str:
    """Return a value as GraphQL writes it: like JSON, but with bare keys and bare words for operators."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{VALUES.get(k, k)}: {literal(v, k)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return str(value) if key == "operator" else json.dumps(value)


BATCH = 256
READ = 100
PAGE = 1000


class WeaviateProvider:
    """Implements `core.vectors.VectorProvider`."""

    name = "weaviate"
    capabilities = Capabilities(
        isolation=frozenset({"collection", "namespace", "filter"}), max_dimension=65_535, max_k=10_000
    )

    def __init__(self, adapter: Adapter, folder: Path, isolation: Isolation, *, sleep: Sleep = asyncio.sleep) -> None:
        check_isolation(self.name, isolation, self.capabilities)
        check_options(adapter, ("consistency", "timeout"))
        self._isolation = isolation
        self._server = WeaviateServer(adapter, sleep=sleep)

    def can_filter(self, where: Filter) -> bool:
        return can_translate(where)

    async def open(self, partition: VectorPartition) -> None:
        await self._server.version()
        target = self._target(partition)
        there = await self._server.make(target, class_definition(partition, self._isolation))
        dimension = dimension_of(there)
        if dimension != partition.dimension:
            raise ModelMismatch(
                f"class {target.name} of weaviate is for vectors of {dimension} dimensions, "
                f"not of {partition.dimension}",
                hint="use the embedding model that the space was built with, or",
                remedy=Remedy(Action.REEMBED),
            )

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        latest = newest_points(partition, points)
        target = self._target(partition)
        if latest and not await self._server.has(target):
            await self.open(partition)
        for some in batched(latest, BATCH):
            await self._server.store(target, [object_of(partition, self._isolation, point) for point in some])

    async def delete(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> None:
        for some in batched(real_ids(chunk_ids), PAGE):
            await self._server.remove(self._target(partition), within(partition, one_of("chunk_id", some)))

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        check_dimension(partition, len(vector))
        if k < 1:
            return []
        rows = await self._rows(
            partition,
            "chunk_id _additional { distance }",
            within(partition, *([passing(where)] if where else [])),
            limit=min(k, self.capabilities.max_k),
            vector=numbers(unit(vector)),
        )
        with self._server.reading():
            found = [
                Candidate(row["chunk_id"], max(-1.0, min(1.0, 1 - float(row["_additional"]["distance"]))))
                for row in rows
            ]
        return sorted(found, key=lambda candidate: -candidate.score)

    async def read(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[Point]:
        points: list[Point] = []
        for some in batched(real_ids(chunk_ids), READ):
            where = within(partition, one_of("chunk_id", some))
            rows = await self._rows(partition, "chunk_id payload _additional { vector }", where, limit=READ)
            with self._server.reading():
                points += [point_of(row) for row in rows]
        return points

    async def ids(self, partition: VectorPartition) -> AsyncIterator[Sequence[str]]:
        # Pages by offset end at 10,000 and pages by cursor take no condition: slots know neither limit.
        waiting = [(0, SLOTS)]
        while waiting:
            low, high = waiting.pop()
            rows = await self._rows(partition, "chunk_id", within(partition, *between("slot", low, high)), limit=PAGE)
            if len(rows) < PAGE:
                with self._server.reading():
                    page = [row["chunk_id"] for row in rows]
                yield page
            elif high - low == 1:
                raise StoreError(f"weaviate holds more points of {partition.space} than {SLOTS} slots can list")
            else:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]

    async def count(self, partition: VectorPartition) -> int:
        target = self._target(partition)
        query = count_query(target.name, tenant=target.tenant, where=within(partition))
        rows = await self._server.rows(target, query)
        with self._server.reading():
            return int(rows[0]["meta"]["count"]) if rows else 0

    async def drop(self, partition: VectorPartition) -> None:
        target = self._target(partition)
        if self._isolation == "collection":
            await self._server.drop(target)
        else:
            await self._server.remove(target, within(partition))

    async def health(self) -> Health:
        return Health(await self._server.version(), f"tenants are kept apart by {self._isolation}")

    async def close(self) -> None:
        await self._server.service.close()

    def _target(self, partition: VectorPartition) -> ClassTenant:
        tenant = plain(partition.tenant_id) if self._isolation == "namespace" else ""
        return ClassTenant(class_name(partition, self._isolation), tenant)

    async def _rows(
        self, partition: VectorPartition, fields: str, where: Json, *, limit: int, vector: list[float] | None = None
    ) -> list[Json]:
        target = self._target(partition)
        query = get_query(target.name, fields, tenant=target.tenant, where=where, limit=limit, vector=vector)
        return await self._server.rows(target, query)
