"""Who did what is recorded: without the words, durably where something goes, and for its own tenant only."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from tests.stocks import fill_stock
from tests.warm import warm_python

from ragstone import Engine, Item, Ragstone, Settings, open_engine
from ragstone.core.audit import AuditEntry, acting_as
from ragstone.core.clock import now
from ragstone.core.collections import BuildRequest
from ragstone.core.errors import InputError, NotFoundError, StoreFull, TenantSuspended
from ragstone.core.search import SearchQuery
from ragstone.stores.control.audit import SqlAuditTrail
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

SECRET = "xylophone"
TEXTS = {
    "granite": f"Granite is an igneous rock. The {SECRET} is kept in a quarry of the north.",
    "marble": "Marble was limestone once. Heat and pressure turned it into the stone of sculptors.",
}
KILLED = """
import asyncio, os, sys
from ragstone import Settings, open_engine
from ragstone.core.audit import acting_as
from ragstone.testing.fakes import FakeEmbedder
import ragstone.engine.components

ragstone.engine.components.build_embedder = lambda _: FakeEmbedder()

async def main():
    engine = open_engine(Settings(data_dir=sys.argv[1]))
    with acting_as("ada"):
        assert await engine.workspace("default").documents.delete(sys.argv[2])
    os._exit(9)  # nothing is closed, nothing flushed

asyncio.run(main())
"""


async def _ingest(engine: Engine) -> None:
    for tenant in ("default", "other"):
        await engine.workspace(tenant).documents.ingest_items(_items())


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_stock(Settings(data_dir=tmp_path_factory.mktemp("stock") / "data"), _ingest)


@pytest.fixture
async def engine(stock: Path, data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    shutil.copytree(stock, data_dir)
    async with open_engine(Settings(data_dir=data_dir)) as opened:
        yield opened


def _items() -> list[Item]:
    return [Item("test", name, name, text, title=name.title()) for name, text in TEXTS.items()]


def _stored(folder: Path) -> bytes:
    return b"".join(one.read_bytes() for one in folder.glob("control.db*"))


async def _ids(engine: Engine, tenant: str = "default") -> dict[str, str]:
    return {one.external_id: one.id for one in await engine.workspace(tenant).documents.list()}


async def _entries(engine: Engine, action: str, tenant: str = "default") -> list[AuditEntry]:
    return await engine.workspace(tenant).audit.list(action=action)


@pytest.mark.req("R-SEC-14", "R-TEN-10")
async def test_what_is_asked_is_recorded_without_its_words(engine: Engine, data_dir: Path) -> None:
    ids = await _ids(engine)
    with acting_as("ada"):
        await workspace_of(engine).search(f"where is the {SECRET}")
        await workspace_of(engine).ask(f"Where is the {SECRET} kept?")
        await workspace_of(engine).verify("Granite is an igneous rock.")
        await workspace_of(engine).research("granite", depth="quick")
        await workspace_of(engine).explain("granite", ids["granite"])
    found = await workspace_of(engine).audit.list()
    told = {one.action: one for one in found if one.action not in ("tenant.create", "document.upload")}
    assert list(told) == ["explain", "research", "verify", "ask", "search"]
    assert {(one.actor, one.kb, one.outcome) for one in told.values()} == {("ada", "default", "done")}
    assert {one.tenant_id for one in told.values()} == {(await engine.tenants.get("default")).id}  # type: ignore[union-attr]
    assert told["search"].count == 2
    assert set(told["search"].document_ids) == set(ids.values())
    assert told["verify"].document_ids[0] == ids["granite"]
    assert told["explain"].target == ids["granite"]
    control = _stored(data_dir)
    assert b"tenant.create" in control
    for word in (SECRET, "Granite", "igneous"):
        assert word.encode() not in control


@pytest.mark.req("R-OBS-28")
async def test_uploads_deletions_reads_and_retrievals_are_recorded(engine: Engine, tmp_path: Path) -> None:
    workspace = workspace_of(engine)
    with acting_as("ada", "request-1"):
        taken = await workspace.documents.upload(b"Slate is split into tiles.", "slate.md")
        await engine.worker().run(until_idle=True)
        await workspace.documents.text(taken.document_id)
        await workspace.search("tiles")
        await workspace.ask("What is slate split into?")
        await workspace.documents.delete(taken.document_id)
    found = [one for one in await workspace.audit.list() if one.actor == "ada"]
    assert {one.request_id for one in found} == {"request-1"}
    told = {one.action: one for one in found}
    assert set(told) == {"document.upload", "document.read", "search", "ask", "document.delete"}
    assert {told[name].target for name in told if name.startswith("document.")} == {taken.document_id}
    assert all(taken.document_id in told[name].document_ids for name in ("search", "ask"))


async def test_folders_are_recorded_by_their_count(engine: Engine, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"Page {name} is about slate.")
    with acting_as("bob"):
        await workspace_of(engine).documents.ingest(tmp_path)
        await workspace_of(engine).documents.ingest(tmp_path)
        (tmp_path / "one.md").write_text("Page one is about chalk now.")
        await workspace_of(engine).documents.queue(tmp_path)
    counts = [one.count for one in await _entries(engine, "document.upload") if one.actor == "bob"]
    assert counts == [1, 2]


async def test_a_search_that_fails_is_recorded_as_such(engine: Engine) -> None:
    with pytest.raises(NotFoundError):
        await workspace_of(engine).search(SearchQuery("granite", kb="elsewhere"))
    with pytest.raises(NotFoundError):
        await workspace_of(engine).verify("Granite is a rock.", kb="elsewhere")
    found = await workspace_of(engine).audit.list(limit=2)
    assert [(one.action, one.kb, one.outcome, one.detail) for one in found] == [
        ("verify", "elsewhere", "failed", "not_found"),
        ("search", "elsewhere", "failed", "not_found"),
    ]


async def test_only_ten_documents_are_named(engine: Engine) -> None:
    more = [Item("test", f"stone {n}", f"stone {n}", f"A stone of kind {n}.") for n in range(15)]
    await workspace_of(engine).documents.ingest_items(more, kb="many")
    await workspace_of(engine).search(SearchQuery("stone", k=15, kb="many"))
    [found] = await _entries(engine, "search")
    assert (found.count, len(found.document_ids)) == (15, 10)


@pytest.mark.req("R-TEN-08")
@pytest.mark.parametrize(
    "what", ["document", "text", "chunks", "chunk_records", "delete", "erase", "status", "explain", "golden"]
)
async def test_a_document_of_another_tenant_is_not_there_and_access_denied_is_recorded(
    engine: Engine, what: str
) -> None:
    theirs = (await _ids(engine, "other"))["granite"]
    unknown = "0" * 32
    calls = {
        "document": lambda one: workspace_of(engine).documents.get(one),
        "text": lambda one: workspace_of(engine).documents.text(one),
        "chunks": lambda one: workspace_of(engine).documents.chunks(one),
        "chunk_records": lambda one: workspace_of(engine).documents.chunk_records(one),
        "delete": lambda one: workspace_of(engine).documents.delete(one),
        "erase": lambda one: workspace_of(engine).erase("document", one),
        "status": lambda one: workspace_of(engine).documents.status(one),
        "explain": lambda one: workspace_of(engine).explain("granite", one),
        "golden": lambda one: workspace_of(engine).feedback.add_golden("granite", [one]),
    }
    answers = []
    with acting_as("mallory"):
        for asked in (theirs, unknown):
            try:
                answers.append(repr(await calls[what](asked)))
            except NotFoundError as error:
                answers.append(f"{error.code} {error}".replace(asked, "ID"))
    assert answers[0] == answers[1]  # whoever asks cannot tell it from one that nobody has
    mine = [one for one in await workspace_of(engine).audit.list() if one.outcome == "denied"]
    assert [(one.target, one.detail, one.actor) for one in mine] == [
        (unknown, "Access denied", "mallory"),
        (theirs, "Access denied", "mallory"),
    ]
    assert [one for one in await engine.workspace("other").audit.list() if one.actor == "mallory"] == []
    assert theirs in (await _ids(engine, "other")).values()


@pytest.mark.req("R-TEN-08")
async def test_jobs_and_passages_of_another_tenant_too(engine: Engine) -> None:
    taken = await engine.workspace("other").documents.upload(b"The ferry.", "ferry.txt")
    [job] = await engine.workspace("other").jobs.list()
    chunk = (await engine.workspace("other").documents.chunks((await _ids(engine, "other"))["granite"]))[0].id
    for call in (workspace_of(engine).jobs.get, workspace_of(engine).jobs.cancel, workspace_of(engine).jobs.retry):
        with pytest.raises(NotFoundError):
            await call(job.id)
    with pytest.raises(NotFoundError):
        await workspace_of(engine).feedback.vote("granite", [chunk])
    denied = [(one.action, one.target) for one in await workspace_of(engine).audit.list() if one.outcome == "denied"]
    assert denied == [("feedback", chunk), *[("job.read", job.id)] * 3]
    assert (await engine.workspace("other").documents.status(taken.document_id)).status == "pending"


async def test_what_is_no_id_or_name_is_not_kept(engine: Engine) -> None:
    for call in (workspace_of(engine).documents.get, workspace_of(engine).documents.delete):
        with suppress(NotFoundError):
            await call(f"the {SECRET} is in the quarry")
    with suppress(NotFoundError, InputError):
        await workspace_of(engine).search(SearchQuery("granite", kb=f"the {SECRET}"))
    found = [one for one in await workspace_of(engine).audit.list() if one.outcome != "done"]
    assert [(one.action, one.outcome, one.target, one.kb) for one in found] == [
        ("search", "failed", "", ""),
        ("document.delete", "denied", "(not an id)", ""),
        ("document.read", "denied", "(not an id)", ""),
    ]


async def test_reading_a_document_is_recorded(engine: Engine) -> None:
    granite = (await _ids(engine))["granite"]
    await workspace_of(engine).documents.get(granite)
    await workspace_of(engine).documents.text(granite)
    await workspace_of(engine).documents.chunks(granite)
    await workspace_of(engine).documents.chunk_records(granite)
    assert [(one.target, one.outcome) for one in await _entries(engine, "document.read")] == [(granite, "done")]


@pytest.mark.req("R-SEC-14")
async def test_deletions_are_recorded_before_and_after(engine: Engine) -> None:
    ids = await _ids(engine)
    with acting_as("ada"):
        assert await workspace_of(engine).documents.delete(ids["granite"])
        [receipt] = await workspace_of(engine).erase("document", ids["marble"])
        await workspace_of(engine).documents.ingest_items(_items(), kb="second")
        assert await workspace_of(engine).knowledge_bases.delete("second") == 2
    found = [
        one for one in reversed(await workspace_of(engine).audit.list()) if "." in one.action and one.actor == "ada"
    ]
    assert [(one.action, one.outcome, one.target, one.count) for one in found] == [
        ("document.delete", "begun", ids["granite"], 0),
        ("document.delete", "done", ids["granite"], 1),
        ("document.erase", "begun", ids["marble"], 0),
        ("document.erase", "done", ids["marble"], 1),
        ("document.upload", "done", "", 2),
        ("kb.delete", "begun", "second", 0),
        ("kb.delete", "done", "second", 2),
    ]
    assert found[3].counts["ledger.chunks"] == receipt.removed["ledger"]["chunks"]


async def test_a_source_that_is_removed_is_recorded(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n\nA note.\n")
    await workspace_of(engine).sources.add("files", "notes", {"path": str(tmp_path / "notes")})
    await workspace_of(engine).sources.sync("notes")
    await engine.worker().run(until_idle=True)
    assert await workspace_of(engine).sources.remove("notes") == 1
    found = await _entries(engine, "source")
    assert [(one.action, one.outcome, one.target, one.count) for one in found] == [
        ("source.delete", "done", "notes", 1),
        ("source.delete", "begun", "notes", 0),
        ("source.sync", "done", "notes", 1),
    ]


@pytest.mark.req("R-SEC-14")
async def test_the_record_of_a_tenants_erasure_stays_and_says_nothing_of_its_content(
    engine: Engine, data_dir: Path
) -> None:
    before = await engine.tenants.get("other")
    assert before is not None
    await engine.workspace("other").search(SECRET)
    assert len(await engine.workspace("other").audit.list()) == 3  # so that it is written
    receipt = await engine.erase_tenant("other")
    assert receipt.complete
    trail: SqlAuditTrail = engine._components.access.audit._trail  # type: ignore[assignment]
    found = await trail.entries(tenant_id=before.id, tenant=None)
    assert [(one.action, one.outcome) for one in found] == [
        ("tenant.erase", "done"),
        ("tenant.delete", "done"),
        ("tenant.delete", "begun"),
        ("search", "done"),
        ("document.upload", "done"),
        ("tenant.create", "done"),
    ]
    assert (found[0].count, found[0].counts["ledger.documents"]) == (2, 2)
    assert SECRET.encode() not in _stored(data_dir)
    # Whoever is given the name later sees nothing of that.
    assert await engine.workspace("other").audit.list() == []


@pytest.mark.req("R-SEC-14")
def test_the_record_of_a_deletion_survives_a_kill(tmp_path: Path, fake_model: FakeEmbedder) -> None:
    with Ragstone(data_dir=tmp_path / "data") as stone:
        stone.ingest_items(_items())
        granite = next(one.id for one in stone.documents() if one.external_id == "granite")
    ran = subprocess.run([*warm_python(), "-c", KILLED, str(tmp_path / "data"), granite], check=False, timeout=240)
    assert ran.returncode == 9
    with Ragstone(data_dir=tmp_path / "data") as stone:
        found = stone.audit(action="document.delete")
    assert [(one.outcome, one.target, one.actor) for one in found] == [
        ("done", granite, "ada"),
        ("begun", granite, "ada"),
    ]


async def test_nothing_is_deleted_that_cannot_be_recorded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    granite = (await _ids(engine))["granite"]

    async def full(*_: object) -> None:
        raise StoreFull("control.db: disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(SqlAuditTrail, "record", full)
        with pytest.raises(StoreFull):
            await workspace_of(engine).documents.delete(granite)
        with pytest.raises(StoreFull):
            await workspace_of(engine).erase("document", granite)
    assert granite in (await _ids(engine)).values()


async def test_a_deletion_that_fails_is_recorded_as_failed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    granite = (await _ids(engine))["granite"]

    def full(_: str) -> None:
        raise StoreFull("ledger.db: disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(engine._components.ledger, "transaction", full)
        with pytest.raises(StoreFull):
            await workspace_of(engine).documents.delete(granite)
    found = await _entries(engine, "document.delete")
    assert [(one.outcome, one.detail) for one in found] == [("failed", "store_full"), ("begun", "")]


async def test_a_search_neither_waits_for_the_record_nor_fails_with_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(*_: object) -> None:
        raise StoreFull("control.db: disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(engine._components.ledger, "control_write", full)
        assert (await workspace_of(engine).search("granite")).hits
        assert await _entries(engine, "search") == []
    assert "1 entries of the audit record were not written" in caplog.text


async def test_a_tenant_sees_its_own_entries_only(engine: Engine) -> None:
    await engine.workspace("other").search("granite")
    assert await _entries(engine, "search") == []
    assert [one.tenant for one in await _entries(engine, "search", "other")] == ["other"]
    assert await engine.workspace("nobody").audit.list() == []
    assert await engine.workspace("other").audit.list(since=now() + timedelta(hours=1)) == []
    with pytest.raises(InputError):
        await workspace_of(engine).audit.list(limit=0)
    await engine.tenants.suspend("other")
    with pytest.raises(TenantSuspended):
        await engine.workspace("other").audit.list()


async def test_0_days_record_deletions_all_the_same(data_dir: Path, fake_model: FakeEmbedder) -> None:
    settings = Settings(data_dir=data_dir, security={"audit_days": 0})
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(_items())
        await workspace_of(engine).search("granite")
        await workspace_of(engine).documents.delete((await _ids(engine))["granite"])
        found = await workspace_of(engine).audit.list()
    assert [one.action for one in found] == ["document.delete", "document.delete", "document.upload", "tenant.create"]


async def test_documents_that_a_folder_no_longer_has_are_counted(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe page {name}.\n")
    await workspace_of(engine).documents.ingest(folder)
    (folder / "a.md").unlink()
    await workspace_of(engine).documents.ingest(folder)
    [gone] = await _entries(engine, "document.gone")
    assert (gone.kb, gone.count) == ("default", 1)


async def test_documents_that_are_too_old_are_recorded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = set((await _ids(engine)).values())
    await engine.tenants.set_retention("default", 5)
    monkeypatch.setattr("ragstone.ingest.jobs.maintenance.now", lambda: now() + timedelta(days=6))
    await engine._components.maintenance._retire("default")
    found = await _entries(engine, "document.retire")
    assert [one.outcome for one in found] == ["done", "done", "begun", "begun"]
    assert {one.target for one in found} == ids


def test_the_blocking_engine_passes_on_who_acts(tmp_path: Path, fake_model: FakeEmbedder) -> None:
    with Ragstone(data_dir=tmp_path / "data") as stone:
        stone.ingest_items(_items())
        with acting_as("ada"):
            stone.search("granite")
        stone.search("granite")
        assert [one.actor for one in stone.audit(action="search")] == ["", "ada"]


async def test_archives_are_recorded(engine: Engine, tmp_path: Path) -> None:
    await workspace_of(engine).archive.export(tmp_path / "all.zip")
    await engine.workspace("other").archive.restore(tmp_path / "all.zip")
    assert [(one.action, one.outcome, one.count) for one in await _entries(engine, "tenant")][:2] == [
        ("tenant.export", "done", 2),
        ("tenant.export", "begun", 0),
    ]
    assert [one.action for one in await _entries(engine, "tenant.import", "other")] == ["tenant.import"]


@pytest.mark.req("R-SEC-14")
async def test_a_collection_that_is_replaced_or_renamed_is_recorded(engine: Engine, data_dir: Path) -> None:
    (data_dir / "corpus.txt").write_text("Granite is an igneous rock.")
    request = BuildRequest("corpus.txt", overwrite=True)
    await workspace_of(engine).collections.build(request)
    assert await workspace_of(engine).audit.list(action="kb.delete") == []
    await workspace_of(engine).collections.build(request)
    done, begun = await workspace_of(engine).audit.list(action="kb.delete")
    assert (begun.outcome, done.outcome, done.target, done.count) == ("begun", "done", "corpus_embeddings", 1)
    await workspace_of(engine).knowledge_bases.rename("corpus_embeddings", "stones")
    renamed, intended = await workspace_of(engine).audit.list(action="kb.rename")
    assert (intended.outcome, renamed.outcome) == ("begun", "done")
    assert (renamed.kb, renamed.target) == ("corpus_embeddings", "stones")


async def test_what_is_gone_is_not_recorded_as_failed(engine: Engine) -> None:
    async def retire() -> None:
        async with engine._components.access.audit.record_action("default", "document.retire", ["a", "b"]) as deed:
            deed.mark_done("a", 1)
            raise StoreFull("the disk is full")

    with pytest.raises(StoreFull):
        await retire()
    ends = {one.target: one.outcome for one in await _entries(engine, "document.retire") if one.outcome != "begun"}
    assert ends == {"a": "done", "b": "failed"}
