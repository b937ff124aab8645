"""A tenant goes to another ledger with all that is its own, and again for what has changed since."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.moves.sites import Site, contents, site, stock, version

from ragstone.core.errors import InputError, SettingsError, StoreBusy, StoreCorrupt
from ragstone.core.jobs import NewJob, Priority
from ragstone.core.model_types import Bill
from ragstone.core.tenants import Quotas
from ragstone.settings.tree import Adapter
from ragstone.stores.control.tenant_rows import Standing
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.ledger.tenant_ledger import SqlTenantLedger
from ragstone.stores.sql.database import Connection
from ragstone.testing.builders import put, unit_vectors
from ragstone.transfer.compare.ledger import plain
from ragstone.transfer.migrate.ledger import carry_activity, compare_standing
from ragstone.transfer.reports import MoveReport


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Site]:
    async with site(tmp_path / "a") as opened:
        await stock(opened, 12)
        await stock(opened, 2, kb="other")
        yield opened


async def carried(here: Site, tmp_path: Path) -> MoveReport:
    """Move to the folder `b`."""
    return await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "b"))


async def same(here: Site, there: Site, tmp_path: Path) -> bool:
    for one, name in ((here, "ours.zip"), (there, "theirs.zip")):
        await one.mover.export_archive(tmp_path / name, overwrite=True)
    return contents(tmp_path / "ours.zip") == contents(tmp_path / "theirs.zip")


async def test_everything_is_the_same_there_and_nothing_has_changed_here(here: Site, tmp_path: Path) -> None:
    before = await here.stores.ledger.of("default").sequence()
    report = await carried(here, tmp_path)
    assert report.is_equal
    (move,) = report.tenants
    assert (move.kbs, move.documents, move.chunks, move.vectors, move.written) == (2, 14, 42, 42, 14)
    assert (move.searches, move.agreement) == (2 * (36 + 6), 1.0)
    assert report.settings == {"store": {"ledger": {"kind": "sqlite"}}, "data_dir": str(tmp_path / "b")}
    assert await here.stores.ledger.of("default").sequence() == before
    async with site(tmp_path / "b") as there:
        assert await same(here, there, tmp_path)


async def test_a_second_move_brings_only_what_has_changed(here: Site, tmp_path: Path) -> None:
    await carried(here, tmp_path)
    assert (await carried(here, tmp_path)).tenants[0].written == 0
    await put(here.stores.ledger, version(100), version(1, word="changed"))
    async with here.stores.ledger.transaction("default") as tx:
        await tx.delete(version(2).document_id)
        await tx.move(version(3).document_id, "renamed", "test:renamed")
        await tx.set_recipe(version(4).document_id, version(4).content_hash, "another")
        await tx.delete_kb("other")
    report = await carried(here, tmp_path)
    assert report.is_equal
    assert report.tenants[0].written == 4
    async with site(tmp_path / "b") as there:
        assert await same(here, there, tmp_path)
        assert [kb.name for kb in await there.stores.ledger.of("default").kbs()] == ["default"]


async def test_a_model_that_changed_meanwhile_is_followed(here: Site, tmp_path: Path) -> None:
    await carried(here, tmp_path)
    book, kb = SqlSpaceBook(here.stores.ledger), await here.kb("other")
    space = await book.of("default").open(kb, "next-model@1", 8)
    lacking = await book.of("default").lacking(kb, space, 0, 100)
    rows = unit_vectors(len(lacking), 8, seed=5)
    await book.of("default").add(space, [(one.number, row) for one, row in zip(lacking, rows, strict=True)])
    async with here.stores.ledger.transaction("default") as tx:
        await tx.flip(kb, space, "2030-01-01T00:00:00+00:00")
    report = await carried(here, tmp_path)
    assert report.is_equal
    async with site(tmp_path / "b") as there:
        assert (await there.kb("other")).space.model == "next-model@1"  # type: ignore[union-attr]
        assert await same(here, there, tmp_path)
    old = (await book.of("default").all(kb))[0].space
    await book.of("default").drop(old)
    assert (await carried(here, tmp_path)).is_equal
    async with site(tmp_path / "b") as there:
        assert len(await SqlSpaceBook(there.stores.ledger).of("default").all(await there.kb("other"))) == 1


async def test_what_somebody_else_wrote_there_is_safe(here: Site, tmp_path: Path) -> None:
    await carried(here, tmp_path)
    async with site(tmp_path / "b") as there:
        await put(there.stores.ledger, version(500))
    with pytest.raises(InputError, match="tenant 'default' is in use there"):
        await carried(here, tmp_path)
    async with site(tmp_path / "b") as there:
        assert "test:00500" in await there.uris()


async def test_a_move_that_was_cut_short_goes_on(here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.transfer.compare.ledger.CHUNKS", 9)

    def cut(what: str, done: int, _total: int) -> None:
        if (what, done) == ("default/default", 18):
            raise KeyError

    with pytest.raises(KeyError):
        await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "b"), on_progress=cut)
    async with site(tmp_path / "b") as there:
        assert len(await there.uris()) == 6
    report = await carried(here, tmp_path)
    assert report.is_equal
    assert report.tenants[0].written == 8


async def test_what_is_written_during_the_move_is_carried_too(here: Site, tmp_path: Path) -> None:
    loop, done = asyncio.get_running_loop(), []

    async def write() -> None:
        await put(here.stores.ledger, version(1, word="changed"), version(200))

    def tell(what: str, _done: int, _total: int) -> None:
        if what.startswith("compare") and not done:
            done.append(loop.create_task(write()))

    report = await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "b"), on_progress=tell)
    await done[0]
    assert (await carried(here, tmp_path)).is_equal
    assert report.tenants[0].documents in (14, 15)
    async with site(tmp_path / "b") as there:
        assert await same(here, there, tmp_path)


async def test_what_is_written_after_the_documents_were_carried_is_carried_too(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write(ours: SqlLedger, theirs: SqlLedger, tenant: str) -> None:
        await carry_activity(ours, theirs, tenant)
        if not await ours.of(tenant).document(version(200).document_id):
            await put(ours, version(200))

    monkeypatch.setattr("ragstone.transfer.migrate.ledger.carry_activity", write)
    report = await carried(here, tmp_path)
    assert report.is_equal
    assert report.tenants[0].documents == 15


async def test_a_ledger_that_never_rests_is_said_to(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(10**6))

    async def sequence(_: SqlTenantLedger) -> int:
        return next(numbers)

    monkeypatch.setattr(SqlTenantLedger, "sequence", sequence)
    with pytest.raises(StoreBusy, match="come in faster than they are carried"):
        await carried(here, tmp_path)


async def test_a_source_with_a_damaged_secret_is_not_carried_as_if_it_were_whole(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = here.stores.sources
    added = await sources.of("default").add(await here.kb(), "mail", "imap", {"password": "x"}, "manual", None)
    broken = 'UPDATE sources SET config = \'{"password": "sealed:v9:"}\' WHERE id = ?'
    await here.stores.ledger.write("default", lambda connection, _: connection.execute(broken, (added.id,)))
    monkeypatch.setattr(sources, "_secret_keys", lambda _: {"password"})
    with pytest.raises(StoreCorrupt, match="mail is damaged"):
        await carried(here, tmp_path)


async def test_sources_quotas_and_waiting_jobs_come_along(here: Site, tmp_path: Path) -> None:
    stores, kb = here.stores, await here.kb()
    added = await stores.sources.of("default").add(kb, "pages", "web", {"urls": ["https://a.example"]}, "daily", None)
    async with stores.ledger.transaction("default") as tx:
        await tx.advance(added.id, {"page": 3})
    await stores.tenants.set_quotas("default", Quotas(documents=1000))
    await stores.tenants.set_retention("default", 90)
    await queue(here, "waiting", b"the content")
    await carried(here, tmp_path)
    await carried(here, tmp_path)
    async with site(tmp_path / "b") as there:
        (found,) = await there.stores.sources.of("default").all()
        assert replace(found, id="") == replace((await stores.sources.of("default").all())[0], id="")
        tenant = await there.stores.tenants.get("default")
        assert tenant is not None
        assert (tenant.quotas, tenant.retention_days) == (Quotas(documents=1000), 90)
        (job,) = await there.stores.queue.of("default").jobs(("pending",))
        assert (job.uri, job.size) == ("waiting", 11)
        original = [(job.document_id, job.facts["original"])]
        assert await there.stores.ledger.of("default").originals(original) == [b"the content"]
    (ours,) = await stores.queue.of("default").jobs(("pending",))
    await stores.queue.of("default").cancel(ours.id)
    await stores.sources.of("default").remove(added.id)
    await carried(here, tmp_path)
    async with site(tmp_path / "b") as there:
        assert await there.stores.queue.of("default").jobs(("pending",)) == []
        assert await there.stores.sources.of("default").all() == []


async def queue(one: Site, name: str, content: bytes) -> None:
    identity = version(900).document_id
    (original,) = await one.stores.ledger.of("default").keep_originals([(identity, content)])
    facts = {"title": "", "metadata": {}, "media_type": "", "modified_at": None, "original": original}
    job = NewJob(
        kind="document",
        source="uploads",
        external_id=name,
        uri=name,
        priority=Priority.UPLOAD,
        document_id=identity,
        content_hash="0" * 64,
        size=len(content),
        facts={**facts, "text": False, "keep": True},
    )
    async with one.stores.ledger.transaction("default") as tx:
        await tx.enqueue(await one.kb(), job)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE documents SET title = 'x' WHERE external_id = '00003'", "differs in title"),
        ("UPDATE documents SET metadata = '{}' WHERE external_id = '00003'", "differs in metadata"),
        ("UPDATE chunks SET content = 'x' WHERE seq = 5", "differs in text of chunk"),
        ("UPDATE chunks SET metadata = '{\"a\": 1}' WHERE seq = 5", "differs in metadata of chunk"),
        ("DELETE FROM vectors WHERE chunk_seq = 5", "differs in vectors"),
        ("DELETE FROM documents WHERE external_id = '00003'", "differs in everything"),
        ("UPDATE spaces SET model = 'other'", "the Spaces of knowledge base 'default' differ"),
    ],
)
async def test_one_row_that_is_not_what_it_should_be_is_named(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, said: str
) -> None:
    async def spoil(self: object) -> None:
        async with site(tmp_path / "b") as there:
            await there.stores.ledger.write("default", _run, statement)

    # Sources and jobs go last: what is spoilt then is not carried again.
    monkeypatch.setattr("ragstone.transfer.migrate.ledger.Carrier.finish", spoil)
    report = await carried(here, tmp_path)
    assert not report.is_equal
    named: Sequence[str] = report.tenants[0].differences.named
    assert any(said in one for one in named), named


def _run(connection: Connection, _tenant_id: str, statement: str) -> None:
    connection.execute(statement)


async def test_the_ledger_in_use_is_no_place_to_move_to(here: Site, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="that is the ledger in use"):
        await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "a"))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="that is the ledger in use"):
        await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "link"))
    with pytest.raises(SettingsError, match=r"store\.ledger\.dsn is needed"):
        await here.mover.migrate(Adapter(kind="postgres"))


def test_what_no_ledger_but_sqlite_can_keep_does_not_count_as_a_difference() -> None:
    assert plain(("a\0", {"b\0": ("c", 1.5)})) == ["a\ufffd", {"b\ufffd": ["c", 1.5]}]


async def test_a_tenant_stands_there_as_it_stands_here(here: Site, tmp_path: Path) -> None:
    tenants = here.stores.tenants
    await tenants.rename("default", "acme")
    await tenants.set_quotas("acme", Quotas(cost_per_month=1.0))
    await tenants.set_retention("acme", 90)
    await tenants.set_settings("acme", {"retrieval.k": 7})
    await tenants.charge_bill("acme", Bill(llm=5.0))
    await tenants.suspend("acme")
    for _ in range(2):
        assert (await carried(here, tmp_path)).is_equal
    async with site(tmp_path / "b") as there:
        ours, theirs = await tenants.get("acme"), await there.stores.tenants.get("acme")
        assert ours is not None
        assert theirs is not None
        assert (theirs.state, theirs.seed) == ("suspended", "default")
        assert replace(theirs, id="", created_at=ours.created_at) == replace(ours, id="")
        assert (await there.stores.tenants.usage("acme")).cost_by_kind == {"llm": 5.0}
        await there.stores.tenants.charge_bill("acme", Bill(llm=1.0))
    await tenants.resume("acme")
    assert (await carried(here, tmp_path)).is_equal
    async with site(tmp_path / "b") as there:
        assert (await there.stores.tenants.get("acme")).state == "active"  # type: ignore[union-attr]
        assert (await there.stores.tenants.usage("acme")).cost == 6.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "active"}, ["state"]),
        ({"quotas": Quotas()}, ["quotas"]),
        ({"retention_days": None, "settings": {}}, ["retention_days", "settings"]),
        ({"seed": "other"}, ["seed"]),
        ({"costs": {"llm": 4.0}}, ["costs"]),
        ({"costs": {"llm": 6.0, "other": 1.0}}, []),
    ],
)
def test_what_does_not_stand_as_it_should_is_named(change: dict[str, Any], said: list[str]) -> None:
    ours = Standing("suspended", Quotas(documents=1), 90, {"retrieval.k": 7}, "acme", {"llm": 5.0})
    found = compare_standing("acme", ours, replace(ours, **change))
    assert list(found.named) == [f"tenant 'acme' differs in its {name}" for name in said]
    assert compare_standing("acme", ours, None).named == ("tenant 'acme' is missing",)


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ({"kind": "sqlite", "options": {"m": 1}}, "a sqlite ledger takes no options"),
        ({"kind": "sqlite", "url": "http://a.example"}, "a sqlite ledger takes no url"),
        ({"kind": "sqlite", "dsn": "postgresql://a"}, "a sqlite ledger takes no dsn"),
        ({"kind": "pgvector", "dsn": "x", "api_key": "y", "url": "z"}, "a postgres ledger takes no api_key, url"),
    ],
)
async def test_what_a_ledger_has_no_use_for_is_refused(
    here: Site, tmp_path: Path, to: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=f"^{said}$"):
        await here.mover.migrate(Adapter.model_validate({"path": tmp_path / "b", **to}))
    assert not (tmp_path / "b").exists()
