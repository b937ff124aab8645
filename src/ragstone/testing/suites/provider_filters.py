"""Conformance tests of a provider's own filters: each means what `core.filters.matches` means."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
from hypothesis import HealthCheck, given, settings

from ragstone.core.filters import And, Equals, Filter, Not, Or, matches, parse_filter
from ragstone.core.types import Json, Matrix
from ragstone.core.vectors import RESERVED, Isolation, VectorProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.filter_cases import COMMON, filters, payloads, sample_payloads
from ragstone.testing.suites.provider_cases import (
    HOSTILE,
    OpensProvider,
    check_nearest,
    id_of,
    make_points,
    new_partition,
    payloads_by_id,
)


class ProviderFilterSuite(OpensProvider):
    """Part of `ProviderSuite`."""

    refuses: ClassVar[frozenset[str]] = frozenset()
    """Names of `filter_cases.COMMON` that the engine cannot do, so that the ledger does them."""
    examples: ClassVar[int] = 15
    """The number of random filters that are tried."""

    async def test_hostile_payloads_are_kept_as_they_are(self, provider: VectorProvider) -> None:
        place = new_partition()
        texts = [text for text in HOSTILE if text.isprintable() or "\x00" in text]
        points = make_points(unit_vectors(len(texts)), *({"value": text, "text": text} for text in texts))
        await provider.open(place)
        await provider.upsert(place, points)
        assert payloads_by_id(await provider.read(place, [point.chunk_id for point in points])) == payloads_by_id(
            points
        )
        for point, text in zip(points, texts, strict=True):
            where = Equals("value", text)
            if provider.can_filter(where):
                found = await provider.search(place, points[0].vector, 100, where)
                assert [candidate.chunk_id for candidate in found] == [point.chunk_id]

    async def test_it_filters_what_people_ask_for(self, provider: VectorProvider) -> None:
        refused = {name for name, where in COMMON.items() if not provider.can_filter(where)}
        assert refused == self.refuses

    async def test_names_of_its_own_are_no_metadata(self, provider: VectorProvider) -> None:
        for name in RESERVED:
            own = Equals(name, "x")
            for where in (own, Not(own), And((own, COMMON["text"])), Or((COMMON["text"], own))):
                assert not provider.can_filter(where)

    async def test_the_filter_acts_before_the_cut(self, provider: VectorProvider) -> None:
        place = new_partition()
        query = unit_vectors(1)[0]
        rows = np.float32(0.3) * unit_vectors(1000, seed=5) + query
        rows[::50] -= 2 * query
        vectors: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        rare = [{"kind": "rare", "flag": True, "number": 5, "tags": ["x", "rare"]}]
        usual = [{"kind": "usual", "flag": False, "number": 0.5, "tags": ["x"]}] * 49
        await provider.open(place)
        await provider.upsert(place, make_points(vectors, *(rare + usual) * 20))
        wanted = {id_of(number): vectors[number] for number in range(0, 1000, 50)}
        for raw in ({"kind": "rare"}, {"flag": True}, {"number": {"gte": 1}}, {"tags": "rare"}):
            where = parse_filter(raw)
            assert where is not None
            if provider.can_filter(where):
                check_nearest(await provider.search(place, query, 20, where), wanted, query, 20)

    def test_filters_mean_what_they_mean_elsewhere(self, tmp_path: Path, isolation: Isolation) -> None:
        with asyncio.Runner() as runner:
            provider = runner.run(self.open(tmp_path, isolation))
            try:
                self._compare_filters(runner, provider)
            finally:
                runner.run(provider.close())

    def _compare_filters(self, runner: asyncio.Runner, provider: VectorProvider) -> None:
        place = new_partition()
        known = sample_payloads()
        vectors = unit_vectors(len(known) + 1)
        runner.run(provider.open(place))
        runner.run(provider.upsert(place, make_points(vectors[1:], *known, first=1)))

        async def compare(where: Filter, drawn: Mapping[str, Json]) -> None:
            everything = [drawn, *known]
            found = await provider.search(place, vectors[0], len(everything), where)
            expected = {id_of(at) for at, payload in enumerate(everything) if matches(where, payload)}
            assert {candidate.chunk_id for candidate in found} == expected

        @settings(
            max_examples=self.examples,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
        )
        @given(filters.filter(provider.can_filter), payloads)
        def check(where: Filter, drawn: Mapping[str, Json]) -> None:
            runner.run(provider.upsert(place, make_points(vectors[:1], drawn)))
            runner.run(compare(where, drawn))

        runner.run(provider.upsert(place, make_points(vectors[:1], {})))
        for where in filter(provider.can_filter, COMMON.values()):
            runner.run(compare(where, {}))
        check()
