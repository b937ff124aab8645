"""A vector database and the ledger are made to agree, whatever happened to either, and however many ids there are."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.conformance.derived import open_derived

from ragstone.core.types import KnowledgeBase
from ragstone.core.vectors import Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.vectors.derived import reconcile as module
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.stores.vectors.derived.reconcile import Difference, PartitionWriter, reconcile
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.stores.vectors.partitions import partition_of
from ragstone.testing.builders import delete, make_version, put, unit_vectors

AGREED = Difference(12, 0, 0)


class Opened:
    """A kb of twelve chunks, in the ledger and in a provider."""

    def __init__(self, ledger: SqliteLedger, index: DerivedIndex, provider: MemoryProvider) -> None:
        self.ledger, self.index, self.provider = ledger, index, provider
        self.kb: KnowledgeBase
        self.place: VectorPartition

    async def fill(self) -> None:
        versions = [make_version(f"d{n}", ["x", "y", "z"], vectors=unit_vectors(3, seed=n)) for n in range(4)]
        self.kb = await put(self.ledger, *versions)
        assert self.kb.space is not None
        tenant_id = await self.ledger.read("default", lambda _, tenant_id: tenant_id)
        self.place = partition_of(tenant_id, self.kb.space)

    def writer(self, provider: MemoryProvider) -> PartitionWriter:
        assert self.kb.space is not None
        return PartitionWriter(self.ledger, provider, "default", self.kb.id, self.kb.space, self.place)

    async def look(self) -> Difference:
        return await reconcile(self.writer(self.provider), repair=False)

    async def repair(self) -> Difference:
        return await reconcile(self.writer(self.provider))

    async def ids(self) -> list[str]:
        return [one async for page in self.provider.ids(self.place) for one in page]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    provider = MemoryProvider(Adapter(kind="memory"), tmp_path, "collection")
    one = Opened(*open_derived(tmp_path, provider), provider)
    await one.fill()
    yield one
    await one.ledger.close()


def stranger(number: int) -> Point:
    return Point(f"{number:032x}", unit_vectors(1, seed=number)[0], {"text": "left"})


async def test_nothing_is_found_where_both_agree(opened: Opened) -> None:
    assert await opened.look() == AGREED
    assert await opened.repair() == AGREED


async def test_orphans_are_deleted_and_the_missing_written(opened: Opened) -> None:
    lost = (await opened.ids())[:5]
    await opened.provider.delete(opened.place, lost)
    await opened.provider.upsert(opened.place, [stranger(n) for n in range(7)])
    assert await opened.look() == Difference(14, 7, 5)
    assert len(await opened.ids()) == 14  # looking changes nothing
    assert await opened.repair() == Difference(14, 7, 5)
    assert await opened.look() == AGREED
    (point,) = await opened.provider.read(opened.place, lost[:1])
    assert point.payload["text"] in ("x", "y", "z")


async def test_a_place_that_was_lost_is_written_anew(opened: Opened) -> None:
    await opened.provider.drop(opened.place)
    assert await opened.repair() == Difference(0, 0, 12)
    assert await opened.look() == AGREED


async def test_what_is_staged_is_no_orphan_and_not_missing(opened: Opened) -> None:
    version = make_version("new", ["s"], vectors=unit_vectors(1, seed=99))
    async with opened.ledger.transaction("default") as tx:
        number = await tx.stage(opened.kb, version)
    assert await opened.look() == AGREED
    await opened.ledger.prepare("default", opened.kb, [(version.document_id, number)])
    assert await opened.repair() == Difference(13, 0, 0)
    assert len(await opened.ids()) == 13


async def test_a_chunk_that_came_while_ids_were_listed_is_not_missing(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = opened.provider.ids

    async def listing(place: VectorPartition) -> AsyncIterator[Sequence[str]]:
        async for page in listed(place):
            yield page
        await put(opened.ledger, make_version("late", vectors=unit_vectors(1, seed=50)))

    monkeypatch.setattr(opened.provider, "ids", listing)
    assert await opened.look() == AGREED


async def test_a_chunk_deleted_while_it_was_written_does_not_come_back(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = (await opened.ids())[:1]
    await opened.provider.delete(opened.place, lost)
    upsert = opened.provider.upsert

    async def slow(place: VectorPartition, points: Sequence[Point]) -> None:
        document = points[0].payload["document_id"]
        await delete(opened.ledger, document)
        await upsert(place, points)

    monkeypatch.setattr(opened.provider, "upsert", slow)
    await opened.repair()
    assert await opened.provider.read(opened.place, lost) == []


async def test_an_index_that_was_away_for_too_long_keeps_nothing_that_went(opened: Opened) -> None:
    # The feed no longer reaches back to where the index was: it cannot say what has gone since.
    opened.ledger.followers = ()
    await delete(opened.ledger, make_version("d0").document_id)
    await put(opened.ledger, make_version("d9", vectors=unit_vectors(1, seed=9)))
    await opened.ledger.write(
        "default",
        lambda connection, _: connection.execute("DELETE FROM changes WHERE seq < (SELECT max(seq) FROM changes)"),
    )
    await opened.index.catch_up("default")
    assert await opened.look() == Difference(10, 0, 0)


async def test_a_hundred_thousand_ids_take_little_memory(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    class Large(MemoryProvider):
        async def ids(self, place: VectorPartition) -> AsyncIterator[Sequence[str]]:
            for start in range(0, 100_000, 1000):
                yield [f"{n:032x}" for n in range(start, start + 1000)]

    monkeypatch.setattr(index_feed, "known_among", lambda _connection, _tenant, _kb, ids: set(ids))
    large = Large(Adapter(kind="memory"), Path(), "collection")
    tracemalloc.start()
    found = await reconcile(opened.writer(large), repair=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found.held, found.missing) == (100_000, 12)
    assert peak < 16 * 1024 * 1024


def test_ids_that_end_in_zeros_stay_apart() -> None:
    ids = ["ab" + "0" * 30, "ab01" + "0" * 28, "00" * 15 + "ab", "0" * 32]
    assert len(set(module._pack_ids(ids).tolist())) == len(set(ids))
