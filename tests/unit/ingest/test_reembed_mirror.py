"""A kb whose vectors are also in an index outside the ledger is moved to another model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.unit.ingest.kit import item
from tests.unit.ingest.move_kit import MoveKit

from ragstone.core.errors import StoreError
from ragstone.core.vectors import Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.ledger import index_feed
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.stores.vectors.memory import MemoryProvider

NAMES = ("pier", "buoy", "gull")


class Elsewhere(MemoryProvider):
    """An index that may be out of reach for one Space."""

    refused: str = ""

    async def upsert(self, place: VectorPartition, points: Sequence[Point]) -> None:
        if place.space == self.refused:
            raise StoreError("the index elsewhere is full")
        await super().upsert(place, points)


class FollowedKit(MoveKit):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.provider = Elsewhere(Adapter(kind="memory"), folder, "collection")
        self.index = DerivedIndex(self.ledger, self.provider)
        self.ledger.followers = (self.index,)

    async def held(self) -> dict[int, int]:
        """How many points the provider has of each Space that it follows."""
        marks = await self.ledger.read("t", index_feed.marks, self.provider.name)
        async with self.ledger.file("t") as file:
            tenant_id = file.tenant_id
        return {
            mark.space_id: await self.provider.count(VectorPartition(tenant_id, f"s{mark.space_id}", mark.dimension))
            for mark in marks
        }


@pytest.fixture
async def kit(data_dir: Path) -> AsyncIterator[FollowedKit]:
    kit = FollowedKit(data_dir)
    await kit.run([item(name) for name in NAMES])
    yield kit
    await kit.index.close()
    await kit.ledger.close()


async def test_the_index_holds_the_new_space_and_lets_go_of_the_old_one(kit: FollowedKit) -> None:
    old = (await kit.spaces())[0].space
    await kit.reembed()
    new = (await kit.spaces())[1].space
    assert await kit.held() == {old.id: 3, new.id: 3}
    vector = (await kit.models["other"].embed(["pier"], "query")).vectors[0]
    found = await kit.index.search("t", await kit.kb(), vector, 3)
    expected = await kit.vectors.search("t", await kit.kb(), vector, 3)
    assert [one.chunk_id for one in found] == [one.chunk_id for one in expected]
    await kit.reembedder.clean("t", "default", retired=True)
    assert await kit.held() == {new.id: 3}


async def test_what_comes_and_goes_while_both_are_there_reaches_each(kit: FollowedKit) -> None:
    await kit.reembed(mode="dual")
    await kit.run([item("mast")])
    async with kit.ledger.transaction("t") as tx:
        await tx.delete((await kit.document("buoy")).id)
    old, new = (one.space.id for one in await kit.spaces())
    assert await kit.held() == {old: 3, new: 2}
    await kit.reembed(mode="full")
    assert await kit.held() == {old: 3, new: 3}


async def test_a_space_that_the_index_cannot_take_in_does_not_become_live(kit: FollowedKit) -> None:
    space = await kit.book.of("t").open(await kit.kb(), "other@1", 32)
    kit.provider.refused = f"s{space.id}"
    with pytest.raises(StoreError, match="the index elsewhere is full"):
        await kit.reembed(force=True)
    assert [one.space.state for one in await kit.spaces()] == ["live", "building"]
    kit.provider.refused = ""
    report = await kit.reembed()
    assert (report.outcome, report.written) == ("promoted", 0)
    assert (await kit.held())[space.id] == 3
