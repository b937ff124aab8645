"""Conformance tests of a ledger's knowledge bases: part of `LedgerSuite`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragstone.core.errors import CollectionExists, InputError, KbGone, ModelMismatch, NotFoundError
from ragstone.core.jobs import NewJob, Priority
from ragstone.core.ledger import Ledger
from ragstone.core.types import NewVersion
from ragstone.testing.builders import DIMENSION, MODEL, make_version, put, unit_vectors

BAD_NAMES = ["", "../x", "a/b", "Upper", ".hidden", "-dash", "with space", "a\x00b", "a\n", "ü", "a" * 64]


class LedgerKbSuite:
    """Names, Spaces and the end of kbs; `LedgerSuite` has the fixture."""

    async def test_a_kb_is_found_under_its_new_name(self, ledger: Ledger) -> None:
        version = make_version(vectors=unit_vectors(1))
        kb = await put(ledger, version)
        other = await put(ledger, make_version("b", kb="other"), kb="other")
        async with ledger.transaction("default") as transaction:
            renamed = await transaction.rename_kb(kb, "handbook")
        assert renamed == replace(kb, name="handbook")
        assert await ledger.of("default").kb("default") is None
        assert await ledger.of("default").kbs() == [renamed, other]
        found = await ledger.of("default").document(version.document_id)
        assert found is not None
        assert found.kb == "handbook"
        assert (await ledger.of("default").stats(renamed)).chunks == 1
        for name, problem in (("other", CollectionExists), ("Not a name", InputError)):
            with pytest.raises(problem):
                async with ledger.transaction("default") as transaction:
                    await transaction.rename_kb(renamed, name)
        with pytest.raises(NotFoundError):
            async with ledger.transaction("default") as transaction:
                await transaction.rename_kb(kb, "again")  # not what it is called any more
        assert await ledger.of("default").kbs() == [renamed, other]

    async def test_a_renamed_kb_keeps_its_documents_from_one_of_its_old_name(self, ledger: Ledger) -> None:
        version = make_version()
        kb = await put(ledger, version)
        async with ledger.transaction("default") as transaction:
            renamed = await transaction.rename_kb(kb, "handbook")
        with pytest.raises(NotFoundError, match="renamed"):
            await put(ledger, version)
        assert await ledger.of("default").kbs() == [renamed]
        assert (await ledger.of("default").stats(renamed)).documents == 1

    async def test_a_kb_goes_with_everything_in_it(self, ledger: Ledger) -> None:
        inside = [make_version(name, vectors=unit_vectors(1), kb="doomed") for name in "ab"]
        outside = make_version("c", vectors=unit_vectors(1))
        doomed = await put(ledger, *inside, kb="doomed")
        await put(ledger, outside)
        async with ledger.transaction("default") as transaction:
            assert await transaction.delete_kb("doomed") == 2
            assert await transaction.delete_kb("doomed") == 0
        assert await ledger.of("default").kb("doomed") is None
        assert [kb.name for kb in await ledger.of("default").kbs()] == ["default"]
        assert await ledger.of("default").document(inside[0].document_id) is None
        assert await ledger.of("default").known_vectors(doomed, ["some words"]) == {}
        assert await ledger.of("default").text(outside.document_id) == "some words"
        with pytest.raises(NotFoundError):
            async with ledger.transaction("default") as transaction:
                await transaction.stage(doomed, inside[0])
        reborn = await put(ledger, inside[0], kb="doomed")
        assert reborn.id != doomed.id
        assert (await ledger.of("default").stats(reborn)).documents == 1

    @pytest.mark.parametrize("kind", ["document", "source", "kb"])
    async def test_parts_of_what_was_never_stored_go_with_what_is_deleted(self, ledger: Ledger, kind: str) -> None:
        stored, other, never = make_version("a"), make_version("b", source="other"), make_version("never")
        kb = await put(ledger, stored, other)
        async with ledger.transaction("default") as transaction:
            for version in (other, never):
                await transaction.save_part(version.document_id, "recipe", "pages:1", b"text")
        await ledger.clean_up("default")
        assert await self._parts(ledger, other, never) == [b"text", b"text"]  # an interrupted run goes on with them
        async with ledger.transaction("default") as transaction:
            if kind == "document":
                await transaction.delete(stored.document_id)
            elif kind == "source":
                await transaction.delete_source(kb, "test")
            else:
                await transaction.delete_kb("default")
        assert await self._parts(ledger, other, never) == [None if kind == "kb" else b"text", None]

    async def test_a_kb_without_vectors_has_no_space(self, ledger: Ledger) -> None:
        assert await ledger.of("default").kb("default") is None
        kb = await put(ledger, make_version())
        assert kb.space is None
        assert await ledger.of("default").space(kb) is None
        assert await ledger.of("default").known_vectors(kb, ["some words"]) == {}

    async def test_a_kb_keeps_to_one_model(self, ledger: Ledger) -> None:
        kb = await put(ledger, make_version(vectors=unit_vectors(1)))
        assert kb.space is not None
        assert (kb.space.model, kb.space.dimension, kb.space.state) == (MODEL, DIMENSION, "live")
        for model, dimension in [("other", DIMENSION), (MODEL, DIMENSION + 1)]:
            with pytest.raises(ModelMismatch):
                async with ledger.transaction("default") as transaction:
                    await transaction.open_space(kb, model, dimension)
        with pytest.raises(ModelMismatch):
            async with ledger.transaction("default") as transaction:
                await transaction.stage(kb, make_version("b", vectors=unit_vectors(1, DIMENSION + 1)))
        assert (await ledger.of("default").stats(kb)).documents == 1
        async with ledger.transaction("default") as transaction:
            assert await transaction.open_space(kb, MODEL, DIMENSION) == kb
        assert await ledger.of("default").space(kb) == kb.space

    async def test_a_job_for_a_kb_that_was_deleted_meanwhile_is_refused_as_such(self, ledger: Ledger) -> None:
        kb = await put(ledger, make_version(kb="doomed"), kb="doomed")
        async with ledger.transaction("default") as transaction:
            await transaction.delete_kb("doomed")
        look = NewJob("sync", "docs", "docs", "source:docs", Priority.SYNC)
        for job in (look, replace(look, kind="document", document_id="d" * 32)):
            with pytest.raises(KbGone, match="deleted meanwhile"):
                async with ledger.transaction("default") as transaction:
                    await transaction.enqueue(kb, job)
        assert await ledger.of("default").status("d" * 32) is None

    async def test_a_name_that_is_unsafe_in_a_path_is_refused(self, ledger: Ledger) -> None:
        for name in BAD_NAMES:
            with pytest.raises(InputError):
                await ledger.of(name).kb("default")
            with pytest.raises(InputError):
                async with ledger.transaction(name):
                    pass
            with pytest.raises(InputError):
                async with ledger.transaction("default") as transaction:
                    await transaction.open_kb(name)
        assert await ledger.of("default").kbs() == []

    async def _parts(self, ledger: Ledger, *versions: NewVersion) -> list[bytes | None]:
        return [await ledger.of("default").part(one.document_id, "recipe", "pages:1") for one in versions]

    async def _texts(self, ledger: Ledger, document: str) -> list[str]:
        return [chunk.chunk.text for chunk in await ledger.of("default").document_chunks(document)]
