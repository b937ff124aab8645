"""Conformance tests of every vector index, to inherit.

    from ragstone.testing.suites.vectors import VectorSuite

    class TestMyIndex(VectorSuite):
        async def open(self, folder):
            ledger = MyLedger(folder)
            return ledger, MyIndex(ledger)

Needs pytest-asyncio with `asyncio_mode = "auto"`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pytest

from ragstone.core.errors import ModelMismatch
from ragstone.core.filters import parse_filter
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import VectorIndex
from ragstone.core.types import Matrix, Vector
from ragstone.testing.builders import DIMENSION, delete, make_version, put, unit_vectors
from ragstone.testing.oracles import check_ranking

Stores = tuple[Ledger, VectorIndex]


@runtime_checkable
class Closing(Protocol):
    """Anything with resources to close: every ledger, and an external index."""

    async def close(self) -> None: ...


# Vectors may be kept as float16.
TOLERANCE = 2e-3


class VectorSuite:
    """Inherit and say how to open a ledger together with the index that follows it."""

    async def open(self, folder: Path) -> Stores:
        """Return a fresh ledger and its vector index."""
        raise NotImplementedError

    @pytest.fixture
    async def stores(self, tmp_path: Path) -> AsyncIterator[Stores]:
        opened = await self.open(tmp_path)
        yield opened
        for index in reversed(opened):
            if isinstance(index, Closing):
                await index.close()

    async def test_the_nearest_come_in_order(self, stores: Stores) -> None:
        ledger, index = stores
        vectors = unit_vectors(200)
        versions = [make_version(f"d{n}", vectors=vectors[2 * n : 2 * n + 2], texts=("x", "y")) for n in range(100)]
        kb = await put(ledger, *versions)
        ids = [await self._ids(ledger, version.document_id) for version in versions]
        for query in unit_vectors(5, seed=9):
            expected = {
                name: float(query @ vectors[2 * n + at]) for n, pair in enumerate(ids) for at, name in enumerate(pair)
            }
            for k in (1, 7, 100, 1000):
                check_ranking(await index.search("default", kb, query, k), expected, k, TOLERANCE)

    async def test_ties_come_in_order_of_id(self, stores: Stores) -> None:
        ledger, index = stores
        same = unit_vectors(1)
        versions = [make_version(f"d{n}", vectors=same) for n in range(30)]
        kb = await put(ledger, *versions)
        ids = sorted([(await self._ids(ledger, version.document_id))[0] for version in versions])
        for k in (1, 10, 30):
            found = await index.search("default", kb, unit_vectors(1, seed=3)[0], k)
            assert [candidate.chunk_id for candidate in found] == ids[:k]

    async def test_the_filter_acts_before_the_cut(self, stores: Stores) -> None:
        ledger, index = stores
        query = unit_vectors(1)[0]
        rare = [make_version(f"r{n}", vectors=_far(query), metadata={"rare": True}) for n in range(10)]
        kb = await put(ledger, make_version("many", ["x"] * 990, vectors=_near(query, 990)), *rare)
        where = parse_filter({"rare": True})
        found = await index.search("default", kb, query, 10, where)
        live = await ledger.of("default").chunks(kb, [candidate.chunk_id for candidate in found])
        assert {chunk.document_id for chunk in live.values()} == {version.document_id for version in rare}
        assert await index.search("default", kb, query, 10, parse_filter({"rare": "no"})) == []

    async def test_a_deleted_document_is_gone_at_once(self, stores: Stores) -> None:
        ledger, index = stores
        vectors = unit_vectors(3)
        versions = [make_version(f"d{n}", vectors=vectors[n : n + 1]) for n in range(3)]
        kb = await put(ledger, *versions)
        gone, *kept = [(await self._ids(ledger, version.document_id))[0] for version in versions]
        assert len(await index.search("default", kb, vectors[0], 10)) == 3
        await delete(ledger, versions[0].document_id)
        found = await index.search("default", kb, vectors[0], 10)
        assert {candidate.chunk_id for candidate in found} == set(kept)
        assert gone not in kept

    async def test_a_replaced_document_is_found_by_its_new_vectors_at_once(self, stores: Stores) -> None:
        ledger, index = stores
        old, new = unit_vectors(2)
        version = make_version(texts=("old", "too"), vectors=np.stack([old, old]))
        kb = await put(ledger, version)
        assert len(await index.search("default", kb, old, 10)) == 2
        await put(ledger, make_version(texts=("new",), vectors=new[None]))
        found = await index.search("default", kb, new, 10)
        assert [candidate.chunk_id for candidate in found] == await self._ids(ledger, version.document_id)
        assert found[0].score == pytest.approx(1, abs=TOLERANCE)

    async def test_a_version_that_is_only_staged_is_not_found(self, stores: Stores) -> None:
        ledger, index = stores
        kb = await put(ledger, make_version("live", vectors=unit_vectors(1)))
        async with ledger.transaction("default") as transaction:
            await transaction.stage(kb, make_version("staged", vectors=unit_vectors(1, seed=1)))
        found = await index.search("default", kb, unit_vectors(1, seed=1)[0], 10)
        live = await ledger.of("default").chunks(kb, [candidate.chunk_id for candidate in found])
        assert [chunk.title for chunk in live.values()] == ["Title of live"]
        assert len(found) == 1

    async def test_chunks_without_a_vector_are_not_found(self, stores: Stores) -> None:
        ledger, index = stores
        vectors = np.concatenate([unit_vectors(1), np.zeros((1, DIMENSION), np.float32)])
        whole = make_version("whole", ("seen", "refused"), vectors=vectors)
        kb = await put(ledger, whole)
        await put(ledger, make_version("words", ("only by word",)))
        found = await index.search("default", kb, vectors[0], 10)
        assert [candidate.chunk_id for candidate in found] == (await self._ids(ledger, whole.document_id))[:1]

    async def test_a_vector_of_another_dimension_is_refused(self, stores: Stores) -> None:
        ledger, index = stores
        kb = await put(ledger, make_version(vectors=unit_vectors(1)))
        for dimension in (1, DIMENSION - 1, DIMENSION + 1):
            with pytest.raises(ModelMismatch):
                await index.search("default", kb, unit_vectors(1, dimension)[0], 10)

    async def test_an_empty_kb_has_nothing_to_find(self, stores: Stores) -> None:
        ledger, index = stores
        bare = await put(ledger, kb="bare")
        assert await index.search("default", bare, unit_vectors(1)[0], 10) == []
        version = make_version(vectors=unit_vectors(1))
        kb = await put(ledger, version)
        await delete(ledger, version.document_id)
        assert await index.search("default", kb, unit_vectors(1)[0], 10) == []

    async def test_a_deleted_kb_has_nothing_to_find(self, stores: Stores) -> None:
        ledger, index = stores
        kb = await put(ledger, make_version(vectors=unit_vectors(1)))
        assert len(await index.search("default", kb, unit_vectors(1)[0], 10)) == 1
        async with ledger.transaction("default") as transaction:
            await transaction.delete_kb("default")
        assert await index.search("default", kb, unit_vectors(1)[0], 10) == []

    async def test_tenants_and_kbs_are_searched_apart(self, stores: Stores) -> None:
        ledger, index = stores
        same = unit_vectors(1)
        for tenant in ("one", "two"):
            for name in ("x", "y"):
                await put(ledger, make_version(vectors=same, tenant=tenant, kb=name), tenant=tenant, kb=name)
        for tenant in ("one", "two"):
            for name in ("x", "y"):
                kb = await ledger.of(tenant).kb(name)
                assert kb is not None
                found = await index.search(tenant, kb, same[0], 10)
                own = await ledger.of(tenant).find(kb, "test", ["a"])
                assert [candidate.chunk_id for candidate in found] == await self._ids(ledger, own["a"].id, tenant)

    async def _ids(self, ledger: Ledger, document: str, tenant: str = "default") -> list[str]:
        return [chunk.id for chunk in await ledger.of(tenant).document_chunks(document)]


def _near(query: Vector, count: int) -> Matrix:
    rows = query + np.float32(0.1) * unit_vectors(count, len(query), seed=5)
    near: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return near


def _far(query: Vector) -> Matrix:
    opposite: Matrix = -query[None]
    return opposite
