"""A collection per source type: filled, searched, merged, moved to and from one collection, and removed as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.derived import open_derived

from ragstone.core.errors import StoreBusy
from ragstone.core.filters import Filter, parse_filter
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import VectorIndex
from ragstone.core.types import Candidate, KnowledgeBase, Vector
from ragstone.core.vectors import VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.stores.vectors.source_types import COLLECTIONS, CollectionsBySourceType, collections_for, part_of
from ragstone.testing.builders import delete, make_version, put, unit_vectors
from ragstone.testing.suites.vectors import VectorSuite

TYPES = ("email", "paper", "rss", "memo")


class Remembering(MemoryProvider):
    """Remembers which collections were searched."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Adapter(kind="memory"), folder, "collection")
        self.searched: list[str] = []
        self.fails = False

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        self.searched.append(partition.space.partition("_")[2])
        return await super().search(partition, vector, k, where)

    async def drop(self, partition: VectorPartition) -> None:
        await super().drop(partition)
        if self.fails:
            raise StoreBusy("the engine went away")

    @property
    def collections(self) -> dict[str, int]:
        """Points in each collection that has some; one that holds a whole Space has no name."""
        held = {stored.partition.space.partition("_")[2]: len(stored.points) for stored in self._partitions.values()}
        return {name: count for name, count in held.items() if count}


class TestCollectionsBySourceType(VectorSuite):
    async def open(self, folder: Path) -> tuple[Ledger, VectorIndex]:
        return open_derived(folder, CollectionsBySourceType(Remembering(folder)))


async def fill(ledger: SqliteLedger) -> tuple[KnowledgeBase, list[str]]:
    """One document of each source type; their ids."""
    vectors = unit_vectors(len(TYPES))
    versions = [
        make_version(kind, vectors=vectors[n : n + 1], metadata={"source_type": kind}) for n, kind in enumerate(TYPES)
    ]
    return await put(ledger, *versions), [version.document_id for version in versions]


SPLIT = {"emails": 1, "papers": 1, "rss": 1, "other": 1}


async def test_a_search_reads_the_collections_that_its_filter_can_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Remembering(tmp_path)
    ledger, index = open_derived(tmp_path, CollectionsBySourceType(memory))
    kb, documents = await fill(ledger)
    assert memory.collections == SPLIT
    vector = unit_vectors(1)[0]
    assert len(await index.search("default", kb, vector, 10)) == len(TYPES)
    assert set(memory.searched) == set(COLLECTIONS)
    monkeypatch.setattr(index_feed, "nearest", None)  # the ledger would answer
    for source_type, collection in (("email", "emails"), ("paper", "papers"), ("rss", "rss"), ("memo", "other")):
        memory.searched.clear()
        assert len(await index.search("default", kb, vector, 1, parse_filter({"source_type": source_type}))) == 1
        assert set(memory.searched) == {collection, "other"}
    await delete(ledger, documents[0])
    await index.catch_up("default")
    assert memory.collections == {"papers": 1, "rss": 1, "other": 1}
    await index.erase("default")
    assert memory.collections == {}
    await ledger.close()


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ({"source_type": ["rss", "hacker_news"]}, {"rss", "hacker_news", "other"}),
        ({"source_type": "email", "year": 2026}, {"emails", "other"}),
        ({"or": [{"source_type": "email"}, {"source_type": "paper", "year": 1}]}, {"emails", "papers", "other"}),
        ({"or": [{"source_type": "email"}, {"year": 2026}]}, set(COLLECTIONS)),
        ({"not": {"source_type": "email"}}, set(COLLECTIONS)),
        ({"and": [{"source_type": "email"}, {"source_type": "web"}]}, {"other"}),
        (None, set(COLLECTIONS)),
    ],
)
def test_a_filter_names_collections(where: dict[str, Any] | None, names: set[str]) -> None:
    assert collections_for(parse_filter(where)) == names


async def test_one_collection_becomes_several_and_several_become_one(tmp_path: Path) -> None:
    memory = Remembering(tmp_path)
    ledger, index = open_derived(tmp_path, memory)
    kb, _ = await fill(ledger)
    vector = unit_vectors(1)[0]
    before = await index.search("default", kb, vector, 10)
    assert memory.collections == {"": 4}
    for provider, held in ((CollectionsBySourceType(memory), SPLIT), (memory, {"": 4})):
        ledger, index = open_derived(tmp_path, provider)
        assert await index.search("default", kb, vector, 10) == before
        assert memory.collections == held
    await ledger.close()


async def test_a_change_of_collections_that_was_cut_short_begins_again(tmp_path: Path) -> None:
    memory = Remembering(tmp_path)
    ledger, index = open_derived(tmp_path, memory)
    kb, _ = await fill(ledger)
    space = kb.space
    assert space is not None
    whole = VectorPartition(
        await ledger.read("default", lambda _, tenant_id: tenant_id), f"s{space.id}", space.dimension
    )
    left_over = await memory.read(whole, [chunk_id async for page in memory.ids(whole) for chunk_id in page])
    memory.fails = True
    ledger, index = open_derived(tmp_path, CollectionsBySourceType(memory))
    vector = unit_vectors(1)[0]
    assert len(await index.search("default", kb, vector, 10)) == len(TYPES)  # by the ledger
    memory.fails = False
    await memory.upsert(part_of(whole, "emails"), left_over)
    ledger, index = open_derived(tmp_path, memory)
    assert len(await index.search("default", kb, vector, 10)) == len(TYPES)
    assert memory.collections == {"": 4}
    await ledger.close()
