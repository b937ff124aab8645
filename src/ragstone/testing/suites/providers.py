"""Conformance tests of every `VectorProvider`, to inherit.

    from ragstone.testing.suites.providers import ProviderSuite

    class TestMyProvider(ProviderSuite):
        isolations = ("collection", "filter")
        refuses = frozenset({"range of texts"})

        async def open(self, folder, isolation):
            return MyProvider(Adapter(kind="mine"), folder, isolation)

Every test runs once for each isolation. Tenants and spaces are new in each test, so that all of them may share
one server. Needs Hypothesis, and pytest-asyncio with `asyncio_mode = "auto"`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from ragstone.core.errors import ModelMismatch
from ragstone.core.types import Matrix
from ragstone.core.vectors import Isolation, Point, VectorPartition, VectorProvider
from ragstone.testing.builders import DIMENSION, unit_vectors
from ragstone.testing.suites.filter_cases import COMMON, sample_payloads
from ragstone.testing.suites.provider_cases import (
    HOSTILE,
    RECALL,
    TOLERANCE,
    all_ids,
    check_nearest,
    checked_nearest,
    id_of,
    make_points,
    new_partition,
    passing,
    payloads_by_id,
)
from ragstone.testing.suites.provider_filters import ProviderFilterSuite


class ProviderSuite(ProviderFilterSuite):
    """Inherit and say how a provider is opened, which isolations it has and which filters its engine lacks."""

    async def test_it_says_what_it_is(self, provider: VectorProvider, isolation: Isolation) -> None:
        assert provider.name
        assert isolation in provider.capabilities.isolation
        assert provider.capabilities.max_dimension >= 1536
        assert provider.capabilities.max_k >= 100
        assert (await provider.health()).version

    async def test_a_place_may_be_opened_again(self, provider: VectorProvider) -> None:
        partition = new_partition()
        await provider.open(partition)
        await provider.upsert(partition, make_points(unit_vectors(3)))
        await provider.open(partition)
        assert await provider.count(partition) == 3

    async def test_the_nearest_come_first_with_their_cosine(self, provider: VectorProvider) -> None:
        partition = new_partition()
        points = make_points(unit_vectors(300))
        await provider.open(partition)
        await provider.upsert(partition, points)
        vectors = {point.chunk_id: point.vector for point in points}
        queries = (points[7].vector, -points[7].vector, *unit_vectors(30, seed=9))
        for k, asked in ((1, 32), (10, 12), (100, 6)):
            # Recall is a mean over queries: an approximate engine may miss one of ten for one of them.
            counts = [
                checked_nearest(await provider.search(partition, query, k), vectors, query, k)
                for query in queries[:asked]
            ]
            found, nearest = map(sum, zip(*counts, strict=True))
            assert found >= RECALL * nearest, f"{found} of {nearest} at k = {k}"

    async def test_all_there_is_comes_when_more_is_asked_for(self, provider: VectorProvider) -> None:
        partition = new_partition()
        points = make_points(unit_vectors(30))
        await provider.open(partition)
        assert await provider.search(partition, points[0].vector, 10) == []
        await provider.upsert(partition, points)
        for k in (31, provider.capabilities.max_k, provider.capabilities.max_k + 1):
            found = await provider.search(partition, points[0].vector, k)
            assert {candidate.chunk_id for candidate in found} == {point.chunk_id for point in points}

    async def test_a_point_is_replaced(self, provider: VectorProvider) -> None:
        partition = new_partition()
        old, new = unit_vectors(2)
        await provider.open(partition)
        await provider.upsert(partition, [Point(id_of(0), old, {"state": "old", "only": "then"})])
        await provider.upsert(partition, [Point(id_of(0), new, {"state": "new"})])
        (found,) = await provider.search(partition, new, 10)
        assert found.chunk_id == id_of(0)
        assert found.score == pytest.approx(1, abs=TOLERANCE)
        assert payloads_by_id(await provider.read(partition, [id_of(0)])) == {id_of(0): '{"state": "new"}'}
        assert await provider.count(partition) == 1
        for where in ({"state": "old"}, {"only": "then"}):
            assert await passing(provider, partition, new, where) <= set()

    async def test_the_last_of_two_points_of_one_id_stays(self, provider: VectorProvider) -> None:
        partition = new_partition()
        old, new = unit_vectors(2)
        await provider.open(partition)
        await provider.upsert(partition, [Point(id_of(0), old, {"n": 1}), Point(id_of(0), new, {"n": 2})])
        assert payloads_by_id(await provider.read(partition, [id_of(0), id_of(0)])) == {id_of(0): '{"n": 2}'}
        assert await all_ids(provider, partition) == [id_of(0)]

    async def test_a_deleted_point_is_gone(self, provider: VectorProvider) -> None:
        partition = new_partition()
        points = make_points(unit_vectors(20))
        await provider.open(partition)
        await provider.upsert(partition, points)
        gone = [point.chunk_id for point in points[:5]]
        for _ in range(2):
            await provider.delete(partition, [*gone, gone[0], id_of(999)])
            found = await provider.search(partition, points[0].vector, 20)
            assert {candidate.chunk_id for candidate in found} == {point.chunk_id for point in points[5:]}
            assert await provider.read(partition, gone) == []
            assert await provider.count(partition) == 15
        await provider.upsert(partition, points[:1])
        assert (await provider.search(partition, points[0].vector, 1))[0].chunk_id == points[0].chunk_id

    async def test_nothing_asked_for_is_nothing_done(self, provider: VectorProvider) -> None:
        partition = new_partition()
        await provider.open(partition)
        await provider.upsert(partition, make_points(unit_vectors(3)))
        await provider.upsert(partition, [])
        await provider.delete(partition, [])
        assert await provider.read(partition, []) == []
        assert await provider.count(partition) == 3

    async def test_a_place_that_was_never_opened_is_empty(self, provider: VectorProvider) -> None:
        partition = new_partition()
        assert await provider.search(partition, unit_vectors(1)[0], 10) == []
        assert await provider.search(partition, unit_vectors(1)[0], 10, COMMON["text"]) == []
        assert await provider.read(partition, [id_of(0)]) == []
        assert await all_ids(provider, partition) == []
        assert await provider.count(partition) == 0
        await provider.delete(partition, [id_of(0)])
        await provider.drop(partition)

    async def test_vectors_and_payloads_are_read_back(self, provider: VectorProvider) -> None:
        partition = new_partition()
        given = [payload | {"text": "some", "chunk_index": at} for at, payload in enumerate(sample_payloads())]
        points = make_points(unit_vectors(len(given)), *given)
        await provider.open(partition)
        await provider.upsert(partition, points)
        read = await provider.read(partition, [*(point.chunk_id for point in points), id_of(999)])
        assert payloads_by_id(read) == payloads_by_id(points)
        vectors = {point.chunk_id: point.vector for point in points}
        for point in read:
            np.testing.assert_allclose(point.vector, vectors[point.chunk_id], atol=TOLERANCE)
            assert np.linalg.norm(point.vector) == pytest.approx(1, abs=TOLERANCE)

    async def test_every_id_comes_once(self, provider: VectorProvider) -> None:
        partition = new_partition()
        points = make_points(unit_vectors(700))
        await provider.open(partition)
        await provider.upsert(partition, points)
        assert await all_ids(provider, partition) == sorted(point.chunk_id for point in points)
        assert await provider.count(partition) == 700
        assert len(await provider.read(partition, [point.chunk_id for point in points])) == 700

    async def test_a_dropped_place_is_empty_and_may_be_used_again(self, provider: VectorProvider) -> None:
        partition = new_partition()
        points = make_points(unit_vectors(20))
        await provider.open(partition)
        await provider.upsert(partition, points)
        for _ in range(2):
            await provider.drop(partition)
            assert await provider.search(partition, points[0].vector, 10) == []
            assert await all_ids(provider, partition) == []
            assert await provider.count(partition) == 0
        await provider.open(partition)
        await provider.upsert(partition, points[:2])
        assert len(await provider.search(partition, points[0].vector, 10)) == 2

    async def test_vectors_of_another_dimension_are_refused(self, provider: VectorProvider) -> None:
        partition = new_partition()
        await provider.open(partition)
        await provider.upsert(partition, make_points(unit_vectors(2)))
        for dimension in (1, DIMENSION - 1, DIMENSION + 1):
            odd = unit_vectors(1, dimension)
            with pytest.raises(ModelMismatch):
                await provider.search(partition, odd[0], 10)
            with pytest.raises(ModelMismatch):
                await provider.upsert(partition, make_points(odd, first=5))
        assert await provider.count(partition) == 2

    async def test_a_place_of_another_dimension_is_refused(
        self, provider: VectorProvider, isolation: Isolation
    ) -> None:
        partition = new_partition()
        await provider.open(partition)
        await provider.upsert(partition, make_points(unit_vectors(2)))
        other = VectorPartition(partition.tenant_id, partition.space, DIMENSION * 2)
        refused = False
        try:
            await provider.open(other)
        except ModelMismatch:
            refused = True
        # Where tenants share a collection for each dimension it may be another partition instead.
        assert refused or isolation != "collection"
        assert refused or await provider.count(other) == 0
        assert await provider.count(partition) == 2

    async def test_tenants_and_spaces_are_kept_apart(self, provider: VectorProvider) -> None:
        one = new_partition()
        partitions = [one, new_partition(tenant=one.tenant_id), new_partition(), new_partition()]
        vectors = {partition: unit_vectors(20, seed=at) for at, partition in enumerate(partitions)}
        ids = [id_of(number) for number in range(20)]
        for at, partition in enumerate(partitions):
            # A payload that claims to belong to the first tenant changes nothing.
            claims = {"owner": at, "tenant_id": one.tenant_id, "space": one.space, "chunk_id": id_of(77)}
            await provider.open(partition)
            await provider.upsert(partition, make_points(vectors[partition], *[claims] * 20))
        await self._check_owners(provider, partitions, vectors)
        await provider.delete(partitions[0], ids[:10])
        assert await all_ids(provider, partitions[0]) == sorted(ids[10:])
        await provider.drop(partitions[2])
        assert await provider.count(partitions[2]) == 0
        assert await provider.count(partitions[0]) == 10
        await self._check_owners(provider, [partitions[1], partitions[3]], vectors)

    async def _check_owners(
        self, provider: VectorProvider, partitions: Sequence[VectorPartition], vectors: Mapping[VectorPartition, Matrix]
    ) -> None:
        ids = [id_of(number) for number in range(20)]
        for partition in partitions:
            assert await provider.count(partition) == 20
            assert await all_ids(provider, partition) == sorted(ids)
            owners = {point.payload["owner"] for point in await provider.read(partition, ids)}
            assert len(owners) == 1
            own = dict(zip(ids, vectors[partition], strict=True))
            for other in vectors.values():
                check_nearest(await provider.search(partition, other[0], 100), own, other[0], 20)
            (owner,) = owners
            assert await passing(provider, partition, other[0], {"owner": owner}) >= set(ids)
            assert await passing(provider, partition, other[0], {"owner": owner + 1}) <= set()

    async def test_writers_at_the_same_time_lose_nothing(self, provider: VectorProvider) -> None:
        partition = new_partition()
        vectors = unit_vectors(250)
        await provider.open(partition)
        await provider.upsert(partition, make_points(vectors[:50]))
        writes = [
            provider.upsert(partition, make_points(vectors[first : first + 10], first=first))
            for first in range(50, 250, 10)
        ]
        deletes = [provider.delete(partition, [id_of(n) for n in range(first, first + 5)]) for first in range(0, 50, 5)]
        searches = [provider.search(partition, vector, 10) for vector in vectors[:5]]
        await asyncio.gather(*writes, *deletes, *searches)
        assert await all_ids(provider, partition) == sorted(id_of(number) for number in range(50, 250))
        found = [(await provider.search(partition, vectors[n], 1))[0].chunk_id for n in range(50, 250, 7)]
        assert found == [id_of(n) for n in range(50, 250, 7)]

    async def test_hostile_ids_reach_nothing(self, provider: VectorProvider) -> None:
        partition = new_partition()
        await provider.open(partition)
        await provider.upsert(partition, make_points(unit_vectors(5)))
        for hostile in HOSTILE:
            assert await provider.read(partition, [hostile]) == []
            await provider.delete(partition, [hostile])
        assert [point.chunk_id for point in await provider.read(partition, [*HOSTILE, id_of(3)])] == [id_of(3)]
        await provider.delete(partition, [*HOSTILE, id_of(3)])
        assert await provider.count(partition) == 4
