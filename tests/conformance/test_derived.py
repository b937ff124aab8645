"""An index outside the ledger answers as one inside it, whatever the engine behind it does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.conformance.derived import open_derived

from ragstone.core.errors import StoreBusy
from ragstone.core.filters import Filter, parse_filter
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import VectorIndex
from ragstone.core.types import Candidate, Vector
from ragstone.core.vectors import Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.ledger import index_feed
from ragstone.stores.vectors.chroma.provider import ChromaProvider
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import delete, make_version, put, unit_vectors
from ragstone.testing.suites.vectors import VectorSuite


def memory(folder: Path) -> MemoryProvider:
    return MemoryProvider(Adapter(kind="memory"), folder, "collection")


class TestDerivedIndex(VectorSuite):
    async def open(self, folder: Path) -> tuple[Ledger, VectorIndex]:
        return open_derived(folder, memory(folder))


class TestChromaBehindTheLedger(VectorSuite):
    async def open(self, folder: Path) -> tuple[Ledger, VectorIndex]:
        adapter = Adapter(kind="chroma", options={"in_memory": True})
        return open_derived(folder, ChromaProvider(adapter, folder, "collection"))


class TestQdrantBehindTheLedger(VectorSuite):
    async def open(self, folder: Path) -> tuple[Ledger, VectorIndex]:
        return open_derived(folder, QdrantProvider(Adapter(kind="qdrant"), folder / "qdrant", "filter"))


def _never(*_: object) -> None:
    raise AssertionError("the ledger was asked")


class Unreliable(MemoryProvider):
    """Does what real engines do on a bad day."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Adapter(kind="memory"), folder, "collection")
        self.invented: list[Candidate] = []
        self.unreachable: set[str] = set()
        self.down = False

    async def search(
        self, place: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        found = await super().search(place, vector, k, where)
        return [*self.invented, *(one for one in found if one.chunk_id not in self.unreachable)][:k]

    async def upsert(self, place: VectorPartition, points: Sequence[Point]) -> None:
        self._check()
        await super().upsert(place, points)

    async def delete(self, place: VectorPartition, chunk_ids: Sequence[str]) -> None:
        self._check()
        await super().delete(place, chunk_ids)

    def _check(self) -> None:
        if self.down:
            raise StoreBusy("the engine is down")


async def test_the_engine_itself_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, index = open_derived(tmp_path, memory(tmp_path))
    vectors = unit_vectors(20)
    kb = await put(ledger, make_version("a", ["x"] * 20, vectors=vectors, metadata={"year": 2026}))
    await index.search("default", kb, vectors[0], 5)
    monkeypatch.setattr(index_feed, "nearest", _never)
    assert len(await index.search("default", kb, vectors[0], 20)) == 20
    assert len(await index.search("default", kb, vectors[0], 5, parse_filter({"year": 2026}))) == 5
    await ledger.close()


@pytest.mark.req("R-STO-37", "R-STO-31")
async def test_a_filter_that_the_engine_does_not_have_is_applied_all_the_same(tmp_path: Path) -> None:
    class NoFilters(MemoryProvider):
        def can_filter(self, where: Filter) -> bool:
            return False

    ledger, index = open_derived(tmp_path, NoFilters(Adapter(kind="memory"), tmp_path, "collection"))
    query = unit_vectors(1)[0]
    rare = make_version("rare", ["far"] * 3, vectors=np.stack([-query] * 3), metadata={"rare": True})
    kb = await put(ledger, make_version("many", ["near"] * 300, vectors=unit_vectors(300)), rare)
    found = await index.search("default", kb, query, 10, parse_filter({"rare": True}))
    assert [round(one.score, 2) for one in found] == [-1.0] * 3
    await ledger.close()


@pytest.mark.parametrize("field", ["updated_at", "created_at"])
async def test_a_field_that_only_the_ledger_knows_is_filtered_there(tmp_path: Path, field: str) -> None:
    ledger, index = open_derived(tmp_path, memory(tmp_path))
    kb = await put(ledger, make_version("a", vectors=unit_vectors(1)))
    search = index.search
    assert await search("default", kb, unit_vectors(1)[0], 5, parse_filter({field: {"gte": "2020-01-01"}}))
    assert not await search("default", kb, unit_vectors(1)[0], 5, parse_filter({field: {"gte": "2999-01-01"}}))
    await ledger.close()


async def test_points_from_before_layouts_were_recorded_are_filtered_by_the_ledger(tmp_path: Path) -> None:
    class OldPoints(MemoryProvider):
        async def upsert(self, place: VectorPartition, points: Sequence[Point]) -> None:
            old = [
                point._replace(payload={**point.payload, "source": "letters", "connector": None}) for point in points
            ]
            await super().upsert(place, old)

    provider = OldPoints(Adapter(kind="memory"), tmp_path, "collection")
    ledger, index = open_derived(tmp_path, provider)
    vectors = unit_vectors(2)
    mail, web = (
        make_version(name, vectors=vectors[n : n + 1], source="letters", metadata={"source": source})
        for n, (name, source) in enumerate((("a", "gmail"), ("b", "outlook")))
    )
    kb = await put(ledger, mail, web)
    await ledger.write("default", lambda c, _: c.execute("DELETE FROM counters WHERE name LIKE 'layout%'") and None)
    await index.catch_up("default")
    for where, count in (({"source": "gmail"}, 1), ({"source": "letters"}, 0), ({"connector": "letters"}, 2)):
        assert len(await index.search("default", kb, vectors[0], 5, parse_filter(where))) == count
    await ledger.close()


@pytest.mark.parametrize("where", [{"source": "gmail"}, {"connector": "letters"}])
async def test_the_engine_itself_filters_by_source_and_connector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: dict[str, str]
) -> None:
    ledger, index = open_derived(tmp_path, memory(tmp_path))
    vectors = unit_vectors(2)
    mail = make_version("a", vectors=vectors[:1], source="letters", metadata={"source": "gmail"})
    kb = await put(ledger, mail, make_version("b", vectors=vectors[1:]))
    await index.search("default", kb, vectors[0], 2)
    monkeypatch.setattr(index_feed, "nearest", _never)
    [found] = await index.search("default", kb, vectors[0], 1, parse_filter(where))
    assert round(found.score, 2) == 1.0
    await ledger.close()


async def test_ids_that_the_engine_makes_up_do_not_take_anybody_s_place(tmp_path: Path) -> None:
    provider = Unreliable(tmp_path)
    ledger, index = open_derived(tmp_path, provider)
    vectors = unit_vectors(30)
    kb = await put(ledger, make_version("a", ["x"] * 30, vectors=vectors))
    foreign = await put(ledger, make_version("b", vectors=unit_vectors(1), tenant="two"), tenant="two")
    other = await ledger.of("two").document_chunks((await ledger.of("two").documents(foreign))[0].id)
    provider.invented = [Candidate(f"{n:032x}", 1.0) for n in range(25)] + [Candidate(other[0].id, 1.0)]
    found = await index.search("default", kb, vectors[0], 10)
    assert len(found) == 10
    assert not {one.chunk_id for one in found} & {one.chunk_id for one in provider.invented}
    await ledger.close()


async def test_chunks_that_the_engine_has_lost_are_found_all_the_same(tmp_path: Path) -> None:
    provider = Unreliable(tmp_path)
    ledger, index = open_derived(tmp_path, provider)
    vectors = unit_vectors(8)
    kb = await put(ledger, make_version("a", ["x"] * 8, vectors=vectors))
    before = await index.search("default", kb, vectors[3], 8)
    provider.unreachable = {before[0].chunk_id, before[1].chunk_id}
    assert [one.chunk_id for one in await index.search("default", kb, vectors[3], 8)] == [
        one.chunk_id for one in before
    ]
    await ledger.close()


async def test_an_engine_that_was_emptied_is_filled_again_at_the_start(tmp_path: Path) -> None:
    ledger, index = open_derived(tmp_path, memory(tmp_path))
    vectors = unit_vectors(6)
    kb = await put(ledger, make_version("a", ["x"] * 6, vectors=vectors))
    await ledger.close()
    fresh = memory(tmp_path)
    ledger, index = open_derived(tmp_path, fresh)
    assert len(await index.search("default", kb, vectors[0], 6)) == 6
    assert kb.space is not None
    tenant_id = await ledger.read("default", lambda _, identity: identity)
    assert await fresh.count(VectorPartition(tenant_id, f"s{kb.space.id}", kb.space.dimension)) == 6
    await ledger.close()


async def test_what_could_not_be_removed_is_removed_later_and_never_found(tmp_path: Path) -> None:
    provider = Unreliable(tmp_path)
    ledger, index = open_derived(tmp_path, provider)
    vectors = unit_vectors(2)
    versions = [make_version(f"d{n}", vectors=vectors[n : n + 1]) for n in range(2)]
    kb = await put(ledger, *versions)
    assert kb.space is not None
    place = VectorPartition(await ledger.read("default", lambda _, one: one), f"s{kb.space.id}", kb.space.dimension)
    provider.down = True
    await delete(ledger, versions[0].document_id)
    assert await provider.count(place) == 2
    assert len(await index.search("default", kb, vectors[0], 10)) == 1
    provider.down = False
    await index.catch_up("default")
    assert await provider.count(place) == 1
    await ledger.close()


@pytest.mark.req("R-TEN-15")
async def test_a_kb_takes_its_place_with_it(tmp_path: Path) -> None:
    provider = memory(tmp_path)
    ledger, _ = open_derived(tmp_path, provider)
    kb = await put(ledger, make_version("a", vectors=unit_vectors(1)))
    assert kb.space is not None
    place = VectorPartition(await ledger.read("default", lambda _, one: one), f"s{kb.space.id}", kb.space.dimension)
    assert await provider.count(place) == 1
    async with ledger.transaction("default") as tx:
        await tx.delete_kb("default")
    assert await provider.count(place) == 0
    assert await ledger.read("default", index_feed.marks, "memory") == []
    await ledger.close()


async def test_a_document_that_moved_is_filtered_by_its_new_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, index = open_derived(tmp_path, memory(tmp_path))
    monkeypatch.setattr(index_feed, "nearest", _never)
    version = make_version("old", vectors=unit_vectors(1))
    kb = await put(ledger, version)
    query = unit_vectors(1)[0]
    assert len(await index.search("default", kb, query, 5, parse_filter({"external_id": "old"}))) == 1
    async with ledger.transaction("default") as tx:
        await tx.move(version.document_id, "new", "test:new")
    assert await index.search("default", kb, query, 5, parse_filter({"external_id": "old"})) == []
    assert len(await index.search("default", kb, query, 5, parse_filter({"uri": "test:new"}))) == 1
    await ledger.close()


async def test_two_processes_share_one_engine(tmp_path: Path) -> None:
    provider = memory(tmp_path)
    writer, _ = open_derived(tmp_path, provider)
    reader, index = open_derived(tmp_path, provider)
    vectors = unit_vectors(3)
    kb = await put(writer, make_version("a", vectors=vectors[:1]))
    assert len(await index.search("default", kb, vectors[0], 10)) == 1
    await put(writer, make_version("b", vectors=vectors[1:2]), make_version("c", vectors=vectors[2:]))
    assert len(await index.search("default", kb, vectors[0], 10)) == 3
    await delete(writer, make_version("b").document_id)
    assert len(await index.search("default", kb, vectors[0], 10)) == 2
    await writer.close()
    await reader.close()
