"""Conformance tests of Spaces, against both ledgers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone.core.clock import now
from ragstone.core.errors import ModelMismatch, NotFoundError
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import SpaceBook
from ragstone.core.spaces import Lacking, Rows
from ragstone.core.types import KnowledgeBase
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.testing.builders import MODEL, delete, make_version, put, unit_vectors

postgres_databases = postgres_server.postgres_databases
TENANT = "default"
Stores = tuple[Ledger, SpaceBook]


class SpaceSuite:
    """Inherit and say how to open a ledger and its Spaces."""

    async def open(self, folder: Path) -> Stores:
        raise NotImplementedError

    @pytest.fixture
    async def stores(self, tmp_path: Path) -> AsyncIterator[Stores]:
        opened = await self.open(tmp_path)
        yield opened
        await opened[0].close()

    async def test_a_space_is_opened_once_and_numbered_on(self, stores: Stores) -> None:
        _, book = stores
        kb = await _fill(stores)
        first = await book.of(TENANT).open(kb, "new", 4)
        assert (first.model, first.dimension, first.generation, first.state) == ("new", 4, 2, "building")
        assert await book.of(TENANT).open(kb, "new", 4, after=1) == first
        second = await book.of(TENANT).open(kb, "new", 4, after=2)
        assert (second.generation, await book.of(TENANT).open(kb, "new", 4)) == (3, second)
        assert (await book.of(TENANT).open(kb, "newer", 4)).generation == 4
        outline = await book.of(TENANT).outline(kb)
        assert [space.model for space, _ in outline] == [MODEL, "new", "new", "newer"]

    async def test_what_a_space_lacks_is_listed_and_counted(self, stores: Stores) -> None:
        ledger, book = stores
        kb = await _fill(stores)
        space = await book.of(TENANT).open(kb, "new", 4)
        found = await book.of(TENANT).lacking(kb, space, 0, 10)
        assert [chunk.text for chunk in found] == ["Title\none", "Title\ntwo", "Title\nthree"]
        assert await book.of(TENANT).lacking(kb, space, found[0].number, 1) == found[1:2]
        assert await book.of(TENANT).coverage(kb, space) == (0, 3)
        assert await book.of(TENANT).add(space, _rows(found[:2])) == 2
        assert await book.of(TENANT).coverage(kb, space) == (2, 3)
        assert await book.of(TENANT).lacking(kb, space, 0, 10) == found[2:]
        known = await book.of(TENANT).find_vectors(space, [chunk.text_hash for chunk in found])
        assert set(known) == {chunk.text_hash for chunk in found[:2]}
        await delete(ledger, make_version("a").document_id)
        assert await book.of(TENANT).coverage(kb, space) == (0, 1)

    async def test_a_truncated_kb_has_one_empty_space_until_it_is_filled(self, stores: Stores) -> None:
        ledger, book = stores
        kb, spaces = await _fill(stores), book.of(TENANT)
        await spaces.open(kb, "new", 4)
        assert not await spaces.is_truncated(kb)
        async with ledger.transaction(TENANT) as tx:
            kb = await tx.truncate(kb, "newer", 4)
        space = kb.space
        assert space is not None
        assert (space.model, space.generation, space.state) == ("newer", 3, "live")
        states = {record.space.generation: record.space.state for record in await spaces.all(kb)}
        assert states == {1: "retired", 2: "retired", 3: "live"}
        assert {old.generation for old in await spaces.list_expired(now())} == {1, 2}
        assert (await ledger.of(TENANT).stats(kb)).unembedded == 2
        assert await spaces.is_truncated(kb)
        await spaces.add(space, _rows(await spaces.lacking(kb, space, 0, 10)))
        await spaces.note_embedded(kb, ())
        assert (await ledger.of(TENANT).stats(kb)).unembedded == 0
        assert not await spaces.is_truncated(kb)

    async def test_a_sample_goes_round_and_has_no_chunk_twice(self, stores: Stores) -> None:
        ledger, book = stores
        kb = await _fill(stores)
        assert kb.space is not None
        texts = ["Title\none", "Title\ntwo", "Title\nthree"]
        for after in ("", "7" * 32, "f" * 32):
            drawn = await book.of(TENANT).sample(kb, kb.space, 10, after)
            assert sorted(chunk.text for chunk in drawn) == sorted(texts)
            assert {chunk.vector.shape for chunk in drawn} == {(kb.space.dimension,)}
            assert len(await book.of(TENANT).sample(kb, kb.space, 2, after)) == 2
        building = await book.of(TENANT).open(kb, "new", 4)
        assert await book.of(TENANT).sample(kb, building, 10, "") == []
        assert [space for space, _ in await book.of(TENANT).outline(kb)] == [kb.space, building]
        await delete(ledger, make_version("a").document_id)
        assert [chunk.text for chunk in await book.of(TENANT).sample(kb, kb.space, 10, "")] == ["Title\nthree"]

    async def test_vectors_are_written_once_and_only_for_what_is_there(self, stores: Stores) -> None:
        ledger, book = stores
        kb = await _fill(stores)
        space = await book.of(TENANT).open(kb, "new", 4)
        rows = _rows(await book.of(TENANT).lacking(kb, space, 0, 10))
        await delete(ledger, make_version("b").document_id)
        assert await book.of(TENANT).add(space, rows) == 2
        assert await book.of(TENANT).add(space, rows) == 0
        with pytest.raises(ModelMismatch, match="a vector of 5 dimensions does not fit a Space of 4"):
            await book.of(TENANT).add(space, [(rows[0][0], unit_vectors(1, 5)[0])])

    async def test_the_flip_completes_what_is_missing_and_is_one_step(self, stores: Stores) -> None:
        ledger, book = stores
        kb = await _fill(stores)
        space = await book.of(TENANT).open(kb, "new", 4)
        asked: list[str] = []

        async def complete(few: Sequence[Lacking]) -> Rows:
            asked.extend(chunk.text for chunk in few)
            return _rows(few)

        until = now() + timedelta(days=1)
        assert await book.of(TENANT).promote(kb, space, keep_until=until, refused=(), complete=complete)
        assert asked == ["Title\none", "Title\ntwo", "Title\nthree"]
        live = await ledger.of(TENANT).space(kb)
        assert live is not None
        assert (live.id, live.state, live.model) == (space.id, "live", "new")
        old, new = await book.of(TENANT).all(kb)
        assert (old.space.state, new.space.state, new.vectors, new.chunks) == ("retired", "live", 3, 3)
        assert old.keep_until is not None
        assert await book.of(TENANT).list_expired(old.keep_until - timedelta(seconds=1)) == []
        assert await book.of(TENANT).list_expired(old.keep_until) == [old.space]

    async def test_a_flip_that_cannot_be_completed_changes_nothing(self, stores: Stores) -> None:
        ledger, book = stores
        kb = await _fill(stores)
        space = await book.of(TENANT).open(kb, "new", 4)

        async def fails(few: Sequence[Lacking]) -> Rows:
            raise ModelMismatch("another model answered")

        with pytest.raises(ModelMismatch, match="another model answered"):
            await book.of(TENANT).promote(kb, space, keep_until=now(), refused=(), complete=fails)
        assert await ledger.of(TENANT).space(kb) == kb.space
        assert await book.of(TENANT).coverage(kb, space) == (0, 3)

    async def test_a_document_says_whether_it_is_in_the_live_space(self, stores: Stores) -> None:
        ledger, book = stores
        kb = await _fill(stores)
        assert not await book.of(TENANT).word_only(kb)
        await put(ledger, make_version("c", ("four", "five")))
        assert await book.of(TENANT).word_only(kb)
        assert kb.space is not None
        found = await book.of(TENANT).lacking(kb, kb.space, 0, 10)
        await book.of(TENANT).note_embedded(kb, ())
        assert await book.of(TENANT).word_only(kb)
        await book.of(TENANT).note_embedded(kb, {chunk.number for chunk in found})
        assert not await book.of(TENANT).word_only(kb)

    async def test_a_space_goes_with_its_vectors_unless_it_is_live(self, stores: Stores) -> None:
        _, book = stores
        kb = await _fill(stores)
        assert kb.space is not None
        assert not await book.of(TENANT).drop(kb.space)
        space = await book.of(TENANT).open(kb, "new", 4)
        rows = _rows(await book.of(TENANT).lacking(kb, space, 0, 10))
        await book.of(TENANT).add(space, rows)
        assert await book.of(TENANT).drop(space)
        assert [record.space for record in await book.of(TENANT).all(kb)] == [kb.space]
        with pytest.raises(NotFoundError, match="was removed meanwhile"):
            await book.of(TENANT).add(space, rows)

    async def test_tenants_have_spaces_of_their_own(self, stores: Stores) -> None:
        ledger, book = stores
        kb = await _fill(stores)
        other = await put(ledger, make_version(tenant="other", vectors=unit_vectors(1)), tenant="other")
        space = await book.of(TENANT).open(kb, "new", 4)
        assert [record.space for record in await book.of("other").all(other)] == [other.space]
        with pytest.raises(NotFoundError):
            await book.of("other").add(space, [(1, unit_vectors(1, 4)[0])])


async def _fill(stores: Stores) -> KnowledgeBase:
    """Two documents with three chunks, in a Space of 32 dimensions."""
    return await put(
        stores[0],
        make_version("a", ("one", "two"), vectors=unit_vectors(2), context="Title\n"),
        make_version("b", ("three",), vectors=unit_vectors(1, seed=1), context="Title\n"),
    )


def _rows(found: Sequence[Lacking]) -> Rows:
    return [(chunk.number, unit_vectors(1, 4, seed=chunk.number)[0]) for chunk in found]


class TestSqliteSpaces(SpaceSuite):
    async def open(self, folder: Path) -> Stores:
        ledger = SqliteLedger(folder)
        return ledger, SqlSpaceBook(ledger)


class TestPostgresSpaces(SpaceSuite):
    async def open(self, folder: Path) -> Stores:
        ledger = PostgresLedger(server(18).database(folder), folder)
        return ledger, SqlSpaceBook(ledger)
