"""An archive meets what is there already: other documents, other models, other tenants, and an earlier try."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.moves.sites import Site, contents, site, stock, version

from ragstone.core.errors import ModelMismatch, QuotaExceeded, StoreError
from ragstone.core.ids import document_id
from ragstone.core.remedies import Action
from ragstone.core.tenants import Quotas
from ragstone.core.types import KnowledgeBase, NewVersion
from ragstone.stores.ledger.snapshots import KbFacts
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.sql.database import Connection
from ragstone.testing.builders import make_version, put, unit_vectors
from ragstone.transfer.migrate.restore import OpenedKb, Restorer


class Cut(BaseException):
    """The end of a process, for all that anyone inside it could do about it."""


async def archived(folder: Path, *versions: NewVersion) -> Path:
    """An archive of these documents, or of twelve."""
    async with site(folder / "source") as here:
        await (put(here.stores.ledger, *versions) if versions else stock(here, 12))
        await here.mover.export_archive(folder / "x.zip")
    return folder / "x.zip"


async def again(folder: Path, there: Site) -> dict[str, bytes]:
    await there.mover.export_archive(folder / "again.zip", overwrite=True)
    return contents(folder / "again.zip")


async def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    archive = await archived(tmp_path)
    async with site(tmp_path / "b") as there:
        await there.mover.import_archive(archive)
        before = await there.stores.ledger.of("default").sequence()
        report = await there.mover.import_archive(archive)
        assert (report.added, report.replaced, report.unchanged, report.left) == (0, 0, 12, 0)
        assert await there.stores.ledger.of("default").sequence() == before


async def test_a_document_that_differs_stays_until_it_may_be_overwritten(tmp_path: Path) -> None:
    archive = await archived(tmp_path)
    async with site(tmp_path / "b") as there:
        await there.mover.import_archive(archive)
        await put(there.stores.ledger, version(3, word="changed"))
        report = await there.mover.import_archive(archive)
        assert (report.unchanged, report.left, report.differing) == (11, 1, ("test:00003",))
        identity = version(3).document_id
        assert "changed" in await there.stores.ledger.of("default").text(identity)
        report = await there.mover.import_archive(archive, overwrite=True)
        assert (report.unchanged, report.replaced, report.left) == (11, 1, 0)
        assert await there.stores.ledger.of("default").text(identity) == version(3).text
        assert (await there.stores.ledger.of("default").document(identity)).version == 3  # type: ignore[union-attr]
        ours, theirs = contents(archive), await again(tmp_path, there)
        chunks = "kbs/default/000000.chunks.jsonl"
        assert ours[chunks] == theirs[chunks]


LAST = version(3)
BY_OTHER_RULES = replace(
    LAST, recipe="other", chunks=tuple(replace(chunk, context="of the harbour") for chunk in LAST.chunks)
)


@pytest.mark.parametrize("other", [version(3, word="changed"), BY_OTHER_RULES], ids=["its text", "its chunks"])
async def test_a_document_that_differs_is_replaced_although_its_chunks_have_the_same_ids(
    tmp_path: Path, other: NewVersion
) -> None:
    archive = await archived(tmp_path, other)
    async with site(tmp_path / "b") as there:
        await put(there.stores.ledger, LAST)
        ledger = there.stores.ledger.of("default")
        report = await there.mover.import_archive(archive, overwrite=True)
        assert (report.replaced, report.unchanged) == (1, 0)
        assert await ledger.text(LAST.document_id) == other.text
        found = await ledger.document_chunks(LAST.document_id)
        assert [one.chunk.contextual for one in found] == [chunk.contextual for chunk in other.chunks]
        report = await there.mover.import_archive(archive, overwrite=True)
        assert (report.replaced, report.unchanged) == (0, 1)


async def test_a_document_of_which_only_the_title_differs_keeps_its_chunks(tmp_path: Path) -> None:
    archive = await archived(tmp_path, version(1))
    async with site(tmp_path / "source") as here:
        await put(here.stores.ledger, version(2))
        kb = await here.kb()
        async with here.stores.ledger.transaction("default") as tx:
            await tx.move(version(1).document_id, version(1).external_id, "test:elsewhere")
        await here.mover.export_archive(tmp_path / "moved.zip")
        assert kb.space is not None
    async with site(tmp_path / "b", store={"vectors": "memory"}) as there:
        await there.mover.import_archive(archive)
        report = await there.mover.import_archive(tmp_path / "moved.zip", overwrite=True)
        assert (report.added, report.replaced) == (1, 1)
        assert await there.uris() == ["test:00002", "test:elsewhere"]
        assert await again(tmp_path, there) == contents(tmp_path / "moved.zip")
        found = await there.stores.vectors.search("default", await there.kb(), unit_vectors(1, seed=1)[0], 6)
        assert len(found) == 6


async def test_one_archive_serves_two_tenants_that_do_not_see_each_other(tmp_path: Path) -> None:
    archive = await archived(tmp_path)
    async with site(tmp_path / "b") as there:
        for tenant in ("one", "two"):
            report = await there.mover.import_archive(archive, tenant=tenant)
            assert (report.tenant, report.added) == (tenant, 12)
        identity = version(0).document_id
        async with there.stores.ledger.transaction("one") as tx:
            assert await tx.delete(identity)
        assert await there.stores.ledger.of("one").document(identity) is None
        assert await there.stores.ledger.of("two").text(identity) == version(0).text
        assert len(await there.uris(tenant="one")) == 11
        assert len(await there.uris(tenant="two")) == 12


async def test_a_document_known_by_another_id_keeps_it_and_its_attachments_follow(tmp_path: Path) -> None:
    parent = make_version("mail", ["a letter"], vectors=unit_vectors(1, seed=1))
    child = replace(
        make_version("mail#1:note", ["a note"], vectors=unit_vectors(1, seed=2)), parent_id=parent.document_id
    )
    archive = await archived(tmp_path, parent, child)
    async with site(tmp_path / "b") as there:
        own = replace(parent, document_id=document_id("elsewhere", "default", "test", "mail"))
        await put(there.stores.ledger, own)
        report = await there.mover.import_archive(archive)
        assert (report.added, report.unchanged) == (1, 1)
        async with there.stores.ledger.transaction("default") as tx:
            await tx.delete(own.document_id)
        assert await there.uris() == []


async def test_a_kb_of_another_model_is_refused_with_the_way_out(tmp_path: Path) -> None:
    archive = await archived(tmp_path)
    async with site(tmp_path / "b") as there:
        await put(there.stores.ledger, version(99, dimension=16))
        with pytest.raises(ModelMismatch, match="knowledge base 'default' was built with") as refusal:
            await there.mover.import_archive(archive)
        assert refusal.value.remedy is not None
        assert refusal.value.remedy.action == Action.REEMBED
        assert await there.uris() == ["test:00099"]


async def spaces_of(one: Site, kb: KnowledgeBase) -> list[tuple[str, int, str, int]]:
    return [
        (record.space.model, record.space.generation, record.space.state, record.vectors)
        for record in await SqlSpaceBook(one.stores.ledger).of("default").all(kb)
    ]


async def test_spaces_beside_the_live_one_come_along_to_a_kb_that_has_none(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        await stock(here, 4)
        book, kb = SqlSpaceBook(here.stores.ledger), await here.kb()
        space = await book.of("default").open(kb, "next-model@1", 8)
        lacking = await book.of("default").lacking(kb, space, 0, 7)
        rows = unit_vectors(7, 8, seed=5)
        await book.of("default").add(space, [(one.number, row) for one, row in zip(lacking, rows, strict=True)])
        await here.mover.export_archive(tmp_path / "x.zip")
        expected = await spaces_of(here, kb)
        assert expected == [("test-model@1", 1, "live", 12), ("next-model@1", 2, "building", 7)]
    async with site(tmp_path / "b") as there:
        await there.mover.import_archive(tmp_path / "x.zip")
        assert await spaces_of(there, await there.kb()) == expected
        assert await again(tmp_path, there) == contents(tmp_path / "x.zip")
    async with site(tmp_path / "c") as other:
        await put(other.stores.ledger, version(99))
        report = await other.mover.import_archive(tmp_path / "x.zip")
        assert report.remarks == ("vectors of next-model@1 (generation 2) were left out of 'default'",)
        assert await spaces_of(other, await other.kb()) == [("test-model@1", 1, "live", 15)]


async def test_documents_without_vectors_are_found_by_word(tmp_path: Path) -> None:
    archive = await archived(tmp_path, version(1), replace(version(2), vectors=None))
    async with site(tmp_path / "b") as there:
        await there.mover.import_archive(archive)
        found = await there.stores.ledger.of("default").documents(await there.kb())
        assert sorted((one.external_id, one.embedded) for one in found) == [("00001", True), ("00002", False)]
        assert await there.stores.lexical.search("default", await there.kb(), "document2", 3)


async def test_sources_come_at_rest_and_without_their_secrets(tmp_path: Path) -> None:
    config = {"host": "mail.example", "user": "ada", "password": "hunter2", "folder": "imap://u:hunter2@mail.example"}
    async with site(tmp_path / "a") as here:
        await stock(here, 1)
        book = here.stores.sources
        added = await book.of("default").add(await here.kb(), "post", "imap", config, "*/15 * * * *", None)
        async with here.stores.ledger.transaction("default") as tx:
            await tx.advance(added.id, {"uid": 7})
        report = await here.mover.export_archive(tmp_path / "x.zip")
        assert report.remarks == ("source 'post' is in it without its password, folder",)
    assert all(b"hunter2" not in content for content in contents(tmp_path / "x.zip").values())
    async with site(tmp_path / "b") as there:
        report = await there.mover.import_archive(tmp_path / "x.zip")
        assert report.sources == 1
        assert (
            "source 'post' of 'default' rests: resume it once it has been given its password, folder" in report.remarks
        )
        (found,) = await there.stores.sources.of("default").all()
        assert (found.paused, found.cursor, found.schedule) == (True, {"uid": 7}, "*/15 * * * *")
        assert found.config == {"host": "mail.example", "user": "ada"}
        report = await there.mover.import_archive(tmp_path / "x.zip")
        assert (report.sources, len(await there.stores.sources.of("default").all())) == (0, 1)


async def test_a_reference_to_the_environment_is_no_secret(tmp_path: Path) -> None:
    config = {"host": "mail.example", "user": "ada", "password": "${MAIL_PASSWORD}"}
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        await stock(here, 1)
        await here.stores.sources.of("default").add(await here.kb(), "post", "imap", config, "manual", None)
        await here.mover.export_archive(tmp_path / "x.zip")
        report = await there.mover.import_archive(tmp_path / "x.zip")
        told = "it is then given ${MAIL_PASSWORD} of this server's environment"
        assert report.remarks == (f"source 'post' of 'default' rests: resume it; {told}",)
        (found,) = await there.stores.sources.of("default").all()
        assert found.config == config


async def test_a_tenant_takes_in_no_more_than_it_may_have(tmp_path: Path) -> None:
    archive = await archived(tmp_path)
    async with site(tmp_path / "b") as there:
        await there.stores.tenants.create("default", Quotas(documents=5))
        with pytest.raises(QuotaExceeded):
            await there.mover.import_archive(archive)
        assert await there.uris() == []


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.transfer.compare.ledger.CHUNKS", 9)


@pytest.mark.usefixtures("small_parts")
async def test_an_import_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    archive = await archived(tmp_path)
    async with site(tmp_path / "b") as there:

        def cut(what: str, done: int, _total: int) -> None:
            if what == "import default" and done == 6:
                raise Cut

        with pytest.raises(Cut):
            await there.mover.import_archive(archive, on_progress=cut)
        assert len(await there.uris()) == 6
        report = await there.mover.import_archive(archive)
        assert (report.added, report.unchanged) == (6, 6)
        assert await again(tmp_path, there) == contents(archive)


@pytest.mark.parametrize("kind", [Cut, StoreError])
@pytest.mark.usefixtures("small_parts")
async def test_what_was_staged_and_never_went_live_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    archive = await archived(tmp_path)
    async with site(tmp_path / "b", store={"vectors": "memory"}) as there:

        async def fail(*_: object) -> None:
            raise kind("gone")

        with monkeypatch.context() as patch:
            patch.setattr(there.stores.ledger, "prepare", fail)
            with pytest.raises(kind):
                await there.mover.import_archive(archive)
        assert await there.uris() == []
        report = await there.mover.import_archive(archive)
        assert (report.added, report.unchanged) == (12, 0)
        assert await again(tmp_path, there) == contents(archive)
        query = unit_vectors(1, seed=5)[0]
        found = await there.stores.vectors.search("default", await there.kb(), query, 10)
        assert len(found) == 10


async def test_a_source_may_read_the_environment_for_its_secrets_only_and_that_is_told(tmp_path: Path) -> None:
    config = {"host": "post.example", "user": "me"}
    async with site(tmp_path / "a") as here:
        await stock(here, 1)
        kb, book = await here.kb(), here.stores.sources
        given = {**config, "password": "${POST_PASSWORD}"}
        await book.of("default").add(kb, "post", "imap", given, "daily", None)
        for name, url in (("plain", "${KEY}"), ("inside", "?k=${KEY:-none}&l=${OTHER}")):
            urls = {"urls": ["https://a.example", f"https://a.example/{url}"]}
            await book.of("default").add(kb, name, "web", urls, "daily", None)
        await here.mover.export_archive(tmp_path / "x.zip")
    async with site(tmp_path / "b") as there:
        report = await there.mover.import_archive(tmp_path / "x.zip")
        assert [(one.name, one.paused) for one in await there.stores.sources.of("default").all()] == [("post", True)]
    assert report.sources == 1
    left_out = "of 'default' was left out: its urls reads"
    given_then = "of 'default' rests: resume it; it is then given"
    assert sorted(report.remarks) == [
        f"source 'inside' {left_out} KEY, OTHER of this server's environment",
        f"source 'plain' {left_out} KEY of this server's environment",
        f"source 'post' {given_then} ${{POST_PASSWORD}} of this server's environment",
    ]


@pytest.mark.parametrize("dropped", [False, True], ids=["retired", "dropped"])
async def test_a_kb_that_moves_to_other_vectors_during_an_import_keeps_none_of_a_space_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: bool
) -> None:
    archive = await archived(tmp_path)
    open_there = Restorer.open

    async def open_and_truncate(self: Restorer, facts: KbFacts) -> OpenedKb:
        opened = await open_there(self, facts)
        async with there.stores.ledger.transaction("default") as tx:
            await tx.truncate(opened.kb, "other@1", 32)
        if dropped:
            assert opened.kb.space is not None
            assert await SqlSpaceBook(there.stores.ledger).of("default").drop(opened.kb.space)
        return opened

    monkeypatch.setattr(Restorer, "open", open_and_truncate)
    async with site(tmp_path / "b") as there:
        assert (await there.mover.import_archive(archive)).added == 12
        kb, spaces = await there.kb(), SqlSpaceBook(there.stores.ledger).of("default")
        held = {record.space.id: record.vectors for record in await spaces.all(kb) if record.vectors}
        assert list(held.values()) == ([] if dropped else [36])
        assert await there.stores.ledger.read("default", _count_vectors) == held
        assert {document.embedded for document in await there.stores.ledger.of("default").documents(kb)} == {False}


def _count_vectors(connection: Connection, tenant_id: str) -> dict[int, int]:
    rows = connection.execute("SELECT space_id, count(*) FROM vectors WHERE tenant_id = ? GROUP BY 1", (tenant_id,))
    return dict(rows.fetchall())
