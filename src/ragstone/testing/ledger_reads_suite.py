"""What is listed, found and counted: the part of the ledger's suite that changes nothing."""

from __future__ import annotations

from ragstone.core.filters import parse_filter
from ragstone.core.ledger import Ledger
from ragstone.testing.builders import MODEL, delete, make_version, put, unit_vectors


class LedgerReadsSuite:
    """Inherited by `LedgerSuite`, which opens the ledger."""

    async def test_documents_come_in_pages_in_order_of_id(self, ledger: Ledger) -> None:
        kb = await put(ledger, *(make_version(f"d{n}") for n in range(7)))
        every = await ledger.documents("default", kb)
        assert [one.id for one in every] == sorted(one.id for one in every)
        assert len(every) == 7
        first = await ledger.documents("default", kb, limit=3)
        rest = await ledger.documents("default", kb, after=first[-1].id, limit=10)
        assert first + rest == every
        assert await ledger.documents("default", kb, after=every[-1].id) == []

    async def test_documents_are_filtered_before_the_page_is_cut(self, ledger: Ledger) -> None:
        kb = await put(
            ledger, *(make_version(f"d{n}", metadata={"even": n % 2 == 0, "n": n}) for n in range(10))
        )
        even = await ledger.documents("default", kb, where=parse_filter({"even": True}), limit=4)
        assert len(even) == 4
        assert {one.metadata["n"] % 2 for one in even} == {0}
        late = await ledger.documents("default", kb, where=parse_filter({"n": {"gte": 8}}))
        assert {one.metadata["n"] for one in late} == {8, 9}

    async def test_many_documents_are_found_by_external_id(self, ledger: Ledger) -> None:
        kb = await put(ledger, make_version("d3"), make_version("d4"), make_version("d5", source="elsewhere"))
        found = await ledger.find("default", kb, "test", [f"d{n}" for n in range(1200)])
        assert set(found) == {"d3", "d4"}

    async def test_stats_count_live_content_only(self, ledger: Ledger) -> None:
        kb = await put(
            ledger,
            make_version("a", ("one two", "three"), vectors=unit_vectors(2)),
            make_version("b", ("four",)),
        )
        await put(ledger, make_version("a", ("five six seven",), vectors=unit_vectors(1)))
        stats = await ledger.stats("default", kb)
        assert (stats.documents, stats.chunks, stats.tokens, stats.unembedded) == (2, 2, 4, 1)
        assert stats.model == MODEL
        assert stats.sequence == await ledger.sequence("default")
        assert stats.bytes > 0

    async def test_the_sequence_grows_with_every_change_of_live_content(self, ledger: Ledger) -> None:
        version = make_version()
        await put(ledger, version)
        seen = [0, await ledger.sequence("default")]
        await put(ledger, make_version(texts=("other",)))
        seen.append(await ledger.sequence("default"))
        await delete(ledger, version.document_id)
        seen.append(await ledger.sequence("default"))
        assert seen == sorted(set(seen))
