"""Partitions and points to try a vector provider with, and what it should have found."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from ragstone.core.filters import matches, parse_filter
from ragstone.core.ids import chunk_id, opaque_id
from ragstone.core.types import Candidate, Json, Matrix, Vector
from ragstone.core.vectors import Isolation, Point, VectorPartition, VectorProvider
from ragstone.testing.builders import DIMENSION

TOLERANCE = 2e-3
RECALL = 0.95
OWN = ("tenant_id", "space", "chunk_id")
"""Payload names that a provider writes itself."""
HOSTILE = (
    *("", " ", "*", "%", "' OR '1'='1", '"; DROP TABLE x; --', 'a"] or chunk_id != ["', "{}", "[]", "\\", "../x"),
    *("a\x00b", "\ud800", "null", "\u202e", "x" * 100_000),
)


def new_partition(dimension: int = DIMENSION, *, tenant: str = "") -> VectorPartition:
    """Return a partition that nothing was ever written to."""
    return VectorPartition(tenant or opaque_id(), opaque_id(), dimension)


def id_of(number: int) -> str:
    """Return the chunk id of the number-th point."""
    return chunk_id("document", 1, number)


def make_points(vectors: Matrix, *given: Mapping[str, Json], first: int = 0) -> list[Point]:
    """Return a point for each row, with a payload of its own or one that says its number."""
    return [
        Point(id_of(first + at), row, given[at] if given else {"number": first + at, "text": f"t{first + at}"})
        for at, row in enumerate(vectors)
    ]


async def all_ids(provider: VectorProvider, partition: VectorPartition) -> list[str]:
    """Return the ids of a partition, sorted."""
    return sorted([chunk_id async for page in provider.ids(partition) for chunk_id in page])


def payloads_by_id(points: Iterable[Point]) -> dict[str, str]:
    """Payloads by id as JSON, which tells 1, 1.0 and true apart; without what the provider added."""
    return {
        point.chunk_id: json.dumps(
            {key: value for key, value in point.payload.items() if key not in OWN}, sort_keys=True
        )
        for point in points
    }


def check_nearest(found: Sequence[Candidate], vectors: Mapping[str, Vector], query: Vector, k: int) -> None:
    """Assert that `found` holds nearly all of the k nearest, with cosine scores, best first, none twice."""
    found_of, nearest = checked_nearest(found, vectors, query, k)
    assert found_of >= RECALL * nearest, f"{found_of} of the {nearest} nearest among {found}"


def checked_nearest(
    found: Sequence[Candidate], vectors: Mapping[str, Vector], query: Vector, k: int
) -> tuple[int, int]:
    """Return the number of the k nearest that were found, and of all; asserts the form of `found`."""
    cosines = {name: float(row @ query) for name, row in vectors.items()}
    ids = [candidate.chunk_id for candidate in found]
    best = sorted(cosines, key=lambda name: -cosines[name])[:k]
    assert len(set(ids)) == len(ids), f"an id came twice: {ids}"
    assert len(ids) <= k
    for candidate in found:
        assert abs(candidate.score - cosines[candidate.chunk_id]) <= TOLERANCE, (
            f"{candidate} is {cosines[candidate.chunk_id]}"
        )
    scores = [candidate.score for candidate in found]
    assert scores == sorted(scores, reverse=True)
    return len(set(ids) & set(best)), len(best)


async def passing(
    provider: VectorProvider, partition: VectorPartition, query: Vector, raw: Mapping[str, Json]
) -> set[str]:
    """Return the ids that pass a filter: by the engine or, where it refuses the filter, by what it gives back."""
    where = parse_filter(raw)
    assert where is not None
    if provider.can_filter(where):
        return {candidate.chunk_id for candidate in await provider.search(partition, query, 100, where)}
    points = await provider.read(partition, await all_ids(provider, partition))
    return {point.chunk_id for point in points if matches(where, point.payload)}


class OpensProvider:
    """The hook by which all suites open the provider under test."""

    isolations: ClassVar[tuple[Isolation, ...]] = ("collection", "namespace", "filter")

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        """Return a provider whose data live with this folder; the same data when the folder was used before."""
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run what asks for an isolation with each of them."""
        if "isolation" in metafunc.fixturenames:
            metafunc.parametrize("isolation", self.isolations)

    @pytest.fixture
    async def provider(self, tmp_path: Path, isolation: Isolation) -> AsyncIterator[VectorProvider]:
        opened = await self.open(tmp_path, isolation)
        yield opened
        await opened.close()
