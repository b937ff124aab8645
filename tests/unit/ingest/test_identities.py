"""Which id a document gets: the one it has, one that racing runs agree on, never one that another document has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.unit.ingest.kit import Kit, item

from ragstone.core.ids import document_id
from ragstone.core.types import KnowledgeBase
from ragstone.ingest.diff import assign_ids
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger


async def ids(kit: Kit, *names: str) -> dict[str, str]:
    return await assign_ids(kit.ledger, "t", "t", await kit.kb(), "test", names)


async def test_new_documents_get_the_id_of_their_place(kit: Kit) -> None:
    await kit.run([item("pier")])
    assert await ids(kit, "pier", "buoy") == {
        "pier": (await kit.document("pier")).id,
        "buoy": document_id("t", "default", "test", "buoy"),
    }


async def test_what_somebody_else_has_just_made_is_the_same_document(kit: Kit) -> None:
    await kit.run([item("pier")])
    late = LateReader(kit.ledger)
    found = await assign_ids(late, "t", "t", await kit.kb(), "test", ["pier"])  # type: ignore[arg-type]
    assert (found, late.reads) == ({"pier": (await kit.document("pier")).id}, 2)


async def test_a_place_whose_document_moved_away_gets_another_id_and_always_the_same(kit: Kit) -> None:
    seen = set()
    for place in ("quay", "dock", "jetty"):
        await kit.run([item("pier")])
        moved = (await kit.document("pier")).id
        seen.add(moved)
        async with kit.ledger.transaction("t") as tx:
            await tx.move(moved, place, f"test/{place}")
        assert await ids(kit, "pier") == await ids(kit, "pier")
        assert (await ids(kit, "pier"))["pier"] not in seen
    await kit.run([item("pier")])
    assert await kit.names() == ["dock", "jetty", "pier", "quay"]


class LateReader:
    """Sees documents under their names only when it looks again, as one does who looked just before they were made."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger
        self.reads = 0

    def of(self, tenant: str) -> LateReader:
        self._rows = self._ledger.of(tenant)
        return self

    async def identities(self, kb: KnowledgeBase, source: str, names: Sequence[str]) -> Mapping[str, str]:
        self.reads += 1
        return {} if self.reads == 1 else await self._rows.identities(kb, source, names)

    async def existing(self, document_ids: Sequence[str]) -> set[str]:
        return await self._rows.existing(document_ids)
