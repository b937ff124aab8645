"""Conformance tests of every ledger, to inherit."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.conformance.suites.ledger_kbs import LedgerKbSuite

from ragstone.core.documents import origin_of
from ragstone.core.errors import NotFoundError
from ragstone.core.filters import parse_filter
from ragstone.core.jobs import NewJob, Priority
from ragstone.core.ledger import Ledger
from ragstone.core.types import KnowledgeBase, Metadata
from ragstone.ingest.prepare import EXTERNAL_ID_BYTES, SOURCE_BYTES
from ragstone.testing.builders import MODEL, delete, make_version, put, unit_vectors

ORIGINS: tuple[Metadata, ...] = (
    {},
    {"source": "inbox"},
    {"source": ""},
    {"source": 5},
    {"source": ["gmail"], "source_type": ["files"]},
    {"source": "gmail", "source_type": "email"},
    {"source": "inbox", "source_type": "files"},
    {"source_type": "upload"},
    {"source_type": "web"},
    {"source_type": "web", "domain": 7},
    {"source": "own", "source_type": "files"},
    {"source_type": "web", "domain": "a.example"},
    {"source": "inbox", "source_type": "web", "domain": "b.example"},
)
"""Metadata of documents, with values that are no text among them."""


class LedgerReadsSuite:
    """Inherited by `LedgerSuite`, which opens the ledger."""

    async def test_documents_come_in_pages_in_order_of_id(self, ledger: Ledger) -> None:
        kb = await put(ledger, *(make_version(f"d{n}") for n in range(7)))
        every = await ledger.of("default").documents(kb)
        assert [document.id for document in every] == sorted(document.id for document in every)
        assert len(every) == 7
        first = await ledger.of("default").documents(kb, limit=3)
        rest = await ledger.of("default").documents(kb, after=first[-1].id, limit=10)
        assert first + rest == every
        assert await ledger.of("default").documents(kb, after=every[-1].id) == []

    async def test_documents_are_filtered_before_the_page_is_cut(self, ledger: Ledger) -> None:
        kb = await put(ledger, *(make_version(f"d{n}", metadata={"even": n % 2 == 0, "n": n}) for n in range(10)))
        even = await ledger.of("default").documents(kb, where=parse_filter({"even": True}), limit=4)
        assert len(even) == 4
        assert {document.metadata["n"] % 2 for document in even} == {0}
        late = await ledger.of("default").documents(kb, where=parse_filter({"n": {"gte": 8}}))
        assert {document.metadata["n"] for document in late} == {8, 9}

    async def test_many_documents_are_found_by_external_id(self, ledger: Ledger) -> None:
        kb = await put(ledger, make_version("d3"), make_version("d4"), make_version("d5", source="elsewhere"))
        found = await ledger.of("default").find(kb, "test", [f"d{n}" for n in range(1200)])
        assert set(found) == {"d3", "d4"}

    async def test_the_longest_external_id_and_source_are_stored(self, ledger: Ledger) -> None:
        chance = random.Random(1)
        longest = make_version(
            chance.randbytes(EXTERNAL_ID_BYTES // 2).hex(), source=chance.randbytes(SOURCE_BYTES // 2).hex()
        )
        kb = await put(ledger, longest)
        found = await ledger.of("default").find(kb, longest.source, [longest.external_id])
        assert found[longest.external_id].id == longest.document_id

    async def test_stats_count_live_content_only(self, ledger: Ledger) -> None:
        kb = await put(
            ledger, make_version("a", ("one two", "three"), vectors=unit_vectors(2)), make_version("b", ("four",))
        )
        await put(ledger, make_version("a", ("five six seven",), vectors=unit_vectors(1)))
        stats = await ledger.of("default").stats(kb)
        assert (stats.documents, stats.chunks, stats.tokens, stats.unembedded) == (2, 2, 4, 1)
        assert stats.model == MODEL
        assert stats.sequence == await ledger.of("default").sequence()
        assert stats.bytes > 0

    async def test_documents_wait_until_they_are_read_and_embedded(self, ledger: Ledger) -> None:
        read, unread = make_version("a"), make_version("b", ("two",), vectors=unit_vectors(1))
        kb = await put(ledger, unread)
        assert await ledger.of("default").count_waiting(kb) == 0
        await put(ledger, read)
        jobs = [NewJob("document", "test", name, name, Priority.UPLOAD, name) for name in (read.document_id, "new")]
        other = NewJob("sync", "test", "test", "source:test", Priority.SYNC)
        async with ledger.transaction("default") as tx:
            await tx.enqueue_all(kb, [*jobs, other])
        assert await ledger.of("default").count_waiting(kb) == 2

    async def test_the_sequence_grows_with_every_change_of_live_content(self, ledger: Ledger) -> None:
        version = make_version()
        await put(ledger, version)
        seen = [0, await ledger.of("default").sequence()]
        await put(ledger, make_version(texts=("other",)))
        seen.append(await ledger.of("default").sequence())
        await delete(ledger, version.document_id)
        seen.append(await ledger.of("default").sequence())
        assert seen == sorted(set(seen))


class LedgerSuite(LedgerReadsSuite, LedgerKbSuite):
    """Inherit and say how to open a ledger; content is checked through the protocol alone."""

    async def open(self, folder: Path) -> Ledger:
        """A ledger whose data lives with this folder; opened twice, it finds what was stored."""
        raise NotImplementedError

    @pytest.fixture
    async def ledger(self, tmp_path: Path) -> AsyncIterator[Ledger]:
        opened = await self.open(tmp_path)
        yield opened
        await opened.close()

    async def test_what_was_put_is_read_back(self, ledger: Ledger) -> None:
        moment = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
        version = make_version(
            texts=("alpha beta", "gamma"),
            vectors=unit_vectors(2),
            context="Title > Part\n",
            metadata={"year": 2026, "tags": ["x", "y"], "none": None},
            modified_at=moment,
        )
        await put(ledger, version)
        found = await ledger.of("default").document(version.document_id)
        assert found is not None
        for name in ("source", "external_id", "uri", "title", "media_type", "recipe", "content_hash"):
            assert getattr(found, name) == getattr(version, name)
        assert (found.kb, found.version, found.chunks, found.tokens, found.embedded) == ("default", 1, 2, 3, True)
        assert found.metadata == {"year": 2026, "tags": ["x", "y"], "none": None}
        assert found.modified_at == moment
        assert await ledger.of("default").text(version.document_id) == "alpha beta\n\ngamma"
        chunks = await ledger.of("default").document_chunks(version.document_id)
        assert tuple(chunk.chunk for chunk in chunks) == version.chunks
        assert {(chunk.document_id, chunk.version, chunk.title, chunk.uri, chunk.source) for chunk in chunks} == {
            (version.document_id, 1, "Title of a", "test:a", "test")
        }
        assert all(chunk.metadata == found.metadata for chunk in chunks)

    async def test_content_outlives_the_process(self, ledger: Ledger, tmp_path: Path) -> None:
        version = make_version(vectors=unit_vectors(1))
        kb = await put(ledger, version)
        before = await ledger.of("default").stats(kb)
        await ledger.close()
        again = await self.open(tmp_path)
        assert await again.of("default").kb("default") == kb
        assert await again.of("default").stats(kb) == before
        assert await again.of("default").text(version.document_id) == "some words"
        await again.close()

    async def test_an_error_inside_the_block_undoes_all_of_it(self, ledger: Ledger) -> None:
        kept = make_version("kept", vectors=unit_vectors(1))
        kb = await put(ledger, kept)
        before = await ledger.of("default").stats(kb)
        added = make_version("added", ("other words",), vectors=unit_vectors(1))

        async def fail() -> None:
            async with ledger.transaction("default") as transaction:
                await transaction.delete(kept.document_id)
                number = await transaction.stage(kb, added)
                await transaction.activate(kb, added.document_id, number)
                await transaction.open_kb("other")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert await ledger.of("default").stats(kb) == before
        assert await ledger.of("default").document(added.document_id) is None
        assert await ledger.of("default").text(kept.document_id) == "some words"
        assert await ledger.of("default").kb("other") is None

    async def test_a_refused_write_leaves_the_ledger_usable(self, ledger: Ledger) -> None:
        kb = await put(ledger, make_version())
        with pytest.raises(NotFoundError):
            async with ledger.transaction("default") as transaction:
                await transaction.activate(kb, "0" * 32, 1)
        await put(ledger, make_version("b"))
        assert (await ledger.of("default").stats(kb)).documents == 2

    async def test_nobody_sees_a_version_before_it_is_activated(self, ledger: Ledger) -> None:
        kb = await put(ledger, make_version("other", ("first",), vectors=unit_vectors(1)))
        before = await ledger.of("default").stats(kb)
        version = make_version(texts=("hidden words",), vectors=unit_vectors(1, seed=1))
        async with ledger.transaction("default") as transaction:
            number = await transaction.stage(kb, version)
        assert await ledger.of("default").document(version.document_id) is None
        assert await ledger.of("default").find(kb, "test", ["a"]) == {}
        assert [document.external_id for document in await ledger.of("default").documents(kb)] == ["other"]
        assert await ledger.of("default").document_chunks(version.document_id) == []
        assert replace(await ledger.of("default").stats(kb), bytes=0) == replace(before, bytes=0)
        with pytest.raises(NotFoundError):
            await ledger.of("default").text(version.document_id)
        async with ledger.transaction("default") as transaction:
            await transaction.activate(kb, version.document_id, number)
        assert await ledger.of("default").text(version.document_id) == "hidden words"

    async def test_a_version_replaces_the_one_before_in_one_step(self, ledger: Ledger) -> None:
        old = make_version(texts=("old one", "old two"), vectors=unit_vectors(2))
        new = make_version(texts=("new",), vectors=unit_vectors(1, seed=1))
        kb = await put(ledger, old)
        old_ids = [chunk.id for chunk in await ledger.of("default").document_chunks(old.document_id)]
        async with ledger.transaction("default") as transaction:
            number = await transaction.stage(kb, new)
            await transaction.activate(kb, new.document_id, number)
            assert await self._texts(ledger, old.document_id) == ["old one", "old two"]
            assert await ledger.of("default").text(old.document_id) == "old one\n\nold two"
        assert await self._texts(ledger, old.document_id) == ["new"]
        assert await ledger.of("default").text(old.document_id) == "new"
        assert await ledger.of("default").chunks(kb, old_ids) == {}
        assert await ledger.of("default").known_vectors(kb, ["old one", "old two"]) == {}
        assert list(await ledger.of("default").known_vectors(kb, ["new"])) == ["new"]
        found = await ledger.of("default").document(new.document_id)
        assert found is not None
        assert (found.version, found.chunks, found.tokens) == (2, 1, 1)

    async def test_putting_the_same_again_changes_nothing_but_the_version(self, ledger: Ledger) -> None:
        version = make_version(texts=("one", "two"), vectors=unit_vectors(2))
        kb = await put(ledger, version)
        first = await ledger.of("default").document(version.document_id)
        await put(ledger, version)
        second = await ledger.of("default").document(version.document_id)
        assert first is not None
        assert second is not None
        assert replace(second, version=1, updated_at=first.updated_at) == first
        assert await self._texts(ledger, version.document_id) == ["one", "two"]
        assert (await ledger.of("default").stats(kb)).documents == 1

    async def test_activating_the_live_version_again_changes_nothing(self, ledger: Ledger) -> None:
        version = make_version(texts=("one", "two"), vectors=unit_vectors(2))
        kb = await put(ledger, version)
        sequence = await ledger.of("default").sequence()
        async with ledger.transaction("default") as transaction:
            await transaction.activate(kb, version.document_id, 1)
        assert await self._texts(ledger, version.document_id) == ["one", "two"]
        assert await ledger.of("default").sequence() == sequence

    async def test_an_abandoned_version_goes_with_the_next(self, ledger: Ledger) -> None:
        kb = await put(ledger, make_version(texts=("first",), vectors=unit_vectors(1)))
        abandoned = make_version(texts=("abandoned",), vectors=unit_vectors(1, seed=1))
        async with ledger.transaction("default") as transaction:
            number = await transaction.stage(kb, abandoned)
        await put(ledger, make_version(texts=("third",), vectors=unit_vectors(1, seed=2)))
        assert await self._texts(ledger, abandoned.document_id) == ["third"]
        assert await ledger.of("default").known_vectors(kb, ["first", "abandoned"]) == {}
        with pytest.raises(NotFoundError):
            async with ledger.transaction("default") as transaction:
                await transaction.activate(kb, abandoned.document_id, number)

    async def test_documents_are_filtered_by_what_they_say_as_their_source(self, ledger: Ledger) -> None:
        versions = [make_version(str(n), source="inbox", metadata=said) for n, said in enumerate(ORIGINS)]
        kb = await put(ledger, *versions)
        found = {}
        for version in versions:
            origin = origin_of(version.metadata, "inbox", version.uri)
            documents = await ledger.of("default").documents(kb, where=parse_filter({"source": origin}))
            found[origin] = {document.external_id for document in documents}
            above = await ledger.of("default").documents(
                kb, where=parse_filter({"source": {"gte": origin, "lte": origin}})
            )
            assert above == documents
        assert found == {
            "inbox": {"0", "1", "2", "3", "4", "8", "9"},
            "gmail": {"5"},
            "test:6": {"6"},
            "test:7": {"7"},
            "own": {"10"},
            "a.example": {"11"},
            "b.example": {"12"},
        }
        everything = await ledger.of("default").documents(kb, where=parse_filter({"connector": "inbox"}))
        assert len(everything) == len(versions)

    async def test_a_path_that_is_a_source_moves_with_its_document(self, ledger: Ledger) -> None:
        said = [{"source": "test:0", "source_type": "files"}, {"source": "st:1"}, {"source": "gmail"}, {}]
        versions = [make_version(str(n), metadata=metadata) for n, metadata in enumerate(said)]
        await put(ledger, *versions)
        async with ledger.transaction("default") as tx:
            for version in versions:
                assert await tx.move(version.document_id, f"new{version.external_id}", f"test:new{version.external_id}")
        moved = [await ledger.of("default").document(version.document_id) for version in versions]
        sources = [document.metadata.get("source") for document in moved if document]
        assert sources == ["test:new0", "st:new1", "gmail", None]

    async def test_the_name_of_a_connector_is_no_source_only_while_nothing_says_it(self, ledger: Ledger) -> None:
        kb = await put(ledger, make_version("a", source="gmail", metadata={"source": "takeout"}))
        resolve = ledger.of("default").resolve_sources
        asked = parse_filter({"and": [{"source": ["gmail", "x"]}, {"not": {"source": "gmail"}}, {"year": 1}]})
        assert await resolve(kb, asked) == parse_filter(
            {
                "and": [
                    {"or": [{"source": ["x"]}, {"connector": ["gmail"]}]},
                    {"not": {"connector": ["gmail"]}},
                    {"year": 1},
                ]
            }
        )
        await put(ledger, make_version("b", metadata={"source": "gmail"}))
        assert await resolve(kb, asked) == asked

    async def test_equal_bytes_under_two_ids_are_two_documents(self, ledger: Ledger) -> None:
        one, two = (make_version(name, vectors=unit_vectors(1)) for name in "ab")
        kb = await put(ledger, one, two)
        assert one.content_hash == two.content_hash
        assert (await ledger.of("default").stats(kb)).documents == 2
        await delete(ledger, one.document_id)
        assert await self._texts(ledger, two.document_id) == ["some words"]
        assert list(await ledger.of("default").known_vectors(kb, ["some words"])) == ["some words"]

    async def test_documents_are_known_by_what_their_source_calls_them(self, ledger: Ledger) -> None:
        one, two = (make_version(name) for name in "ab")
        kb = await put(ledger, one, two)
        known = await ledger.of("default").identities(kb, one.source, [two.external_id, "c", one.external_id])
        assert known == {one.external_id: one.document_id, two.external_id: two.document_id}
        assert await ledger.of("default").identities(kb, "elsewhere", [one.external_id]) == {}
        assert await ledger.of("default").existing([two.document_id, "0" * 32]) == {two.document_id}
        assert await ledger.of("default").existing([]) == set()

    async def test_documents_that_share_a_band_resemble_each_other(self, ledger: Ledger) -> None:
        one, two, three = (
            replace(make_version(name), signature=name.encode(), bands=bands)
            for name, bands in (("a", (1, 2)), ("b", (2, 3)), ("c", (4,)))
        )
        kb = await put(ledger, one, two, three)
        asked = {one.document_id: one.bands, three.document_id: three.bands, "new": (3, 4)}
        assert await ledger.of("default").resembling(kb, asked) == {
            one.document_id: {two.document_id: b"b"},
            three.document_id: {},
            "new": {two.document_id: b"b", three.document_id: b"c"},
        }

    async def test_nothing_of_a_deleted_document_remains(self, ledger: Ledger) -> None:
        version = make_version(texts=("one", "two"), vectors=unit_vectors(2))
        kb = await put(ledger, version)
        ids = [chunk.id for chunk in await ledger.of("default").document_chunks(version.document_id)]
        assert len(await ledger.of("default").chunks(kb, ids)) == 2
        assert await delete(ledger, version.document_id) is True
        assert await delete(ledger, version.document_id) is False
        assert await ledger.of("default").document(version.document_id) is None
        assert await ledger.of("default").documents(kb) == []
        assert await ledger.of("default").document_chunks(version.document_id) == []
        assert await ledger.of("default").chunks(kb, ids) == {}
        assert await ledger.of("default").known_vectors(kb, ["one", "two"]) == {}
        stats = await ledger.of("default").stats(kb)
        assert (stats.documents, stats.chunks, stats.tokens) == (0, 0, 0)
        with pytest.raises(NotFoundError):
            await ledger.of("default").text(version.document_id)

    async def test_a_document_that_comes_in_with_another_from_now_on_goes_with_it(self, ledger: Ledger) -> None:
        mail, attached = make_version("mail"), make_version("attached")
        kb = await put(ledger, mail, attached)
        await put(ledger, replace(attached, parent_id=mail.document_id))
        await put(ledger, attached)
        assert await ledger.of("default").children(mail.document_id) == [attached.document_id]
        await delete(ledger, mail.document_id)
        assert await ledger.of("default").documents(kb) == []

    async def test_a_withdrawn_document_is_there_and_says_nothing(self, ledger: Ledger) -> None:
        version = make_version(vectors=unit_vectors(1))
        kb = await put(ledger, version)
        await put(ledger, replace(make_version("part"), parent_id=version.document_id))
        async with ledger.transaction("default") as transaction:
            assert await transaction.withdraw(version.document_id)
            assert not await transaction.withdraw(version.document_id)
            assert await transaction.existing([version.document_id])
            assert not await transaction.is_live(version.document_id)
        assert await ledger.of("default").document(version.document_id) is None
        assert await ledger.of("default").document_chunks(version.document_id) == []
        assert (await ledger.of("default").stats(kb)).documents == 0
        await put(ledger, version)
        found = await ledger.of("default").document(version.document_id)
        assert found is not None
        assert (found.version, found.chunks, found.embedded) == (2, 1, True)

    async def test_only_live_chunks_of_this_tenant_and_kb_are_read_back(self, ledger: Ledger) -> None:
        ids: dict[str, str] = {}
        for tenant, scope, name in [("one", "x", "mine"), ("one", "y", "other_kb"), ("two", "x", "foreign")]:
            version = make_version(name, (name,), tenant=tenant, kb=scope)
            await put(ledger, version, tenant=tenant, kb=scope)
            ids[name] = (await ledger.of(tenant).document_chunks(version.document_id))[0].id
        stale = make_version("replaced", ("before",), tenant="one", kb="x")
        await put(ledger, stale, tenant="one", kb="x")
        ids["stale"] = (await ledger.of("one").document_chunks(stale.document_id))[0].id
        kb = await put(ledger, replace(stale, text="after"), tenant="one", kb="x")
        found = await ledger.of("one").chunks(kb, [*ids.values(), "unknown"])
        assert {name: chunk.chunk.text for name, chunk in found.items()} == {ids["mine"]: "mine"}

    async def test_two_tenants_never_see_each_other(self, ledger: Ledger) -> None:
        kbs: dict[str, KnowledgeBase] = {}
        versions = {name: make_version("same", (f"of {name}",), tenant=name) for name in ("one", "two")}
        for name, version in versions.items():
            kbs[name] = await put(ledger, version, tenant=name)
        for own, foreign in (("one", "two"), ("two", "one")):
            theirs = versions[foreign].document_id
            assert await ledger.of(own).document(theirs) is None
            assert await ledger.of(own).document_chunks(theirs) == []
            assert await delete(ledger, theirs, tenant=own) is False
            found = await ledger.of(own).find(kbs[own], "test", ["same"])
            assert [document.id for document in found.values()] == [versions[own].document_id]
            assert [document.id for document in await ledger.of(own).documents(kbs[own])] == [versions[own].document_id]
            assert (await ledger.of(own).stats(kbs[own])).documents == 1
            assert await ledger.of(own).text(versions[own].document_id) == f"of {own}"
            with pytest.raises(NotFoundError):
                await ledger.of(own).text(theirs)

    async def test_known_vectors_are_those_of_equal_text(self, ledger: Ledger) -> None:
        vectors = unit_vectors(2)
        kb = await put(ledger, make_version(texts=("one", "two"), vectors=vectors, context="Part: "))
        known = await ledger.of("default").known_vectors(kb, ["Part: one", "one", "Part: two"])
        assert set(known) == {"Part: one", "Part: two"}
        np.testing.assert_allclose(known["Part: one"], vectors[0], atol=1e-3)
        np.testing.assert_allclose(known["Part: two"], vectors[1], atol=1e-3)
