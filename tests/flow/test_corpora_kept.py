"""What belongs to a collection goes with it: files, names, tenants, and what a build left behind."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server
from tests.flow import corpus_kit
from tests.flow.corpus_kit import AGAIN, BUILD, NAME, NEW, OLD, files, leave_draft, live_ids, texts

from ragstone import Item, Ragstone
from ragstone.core.audit import Receipt
from ragstone.core.collections import draft_prefix, is_draft
from ragstone.core.errors import CollectionExists, InputError, NotFoundError, StoreBusy, StoreError
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import KnowledgeBase
from ragstone.stores.corpus.files import FilePair
from ragstone.testing.fakes import FakeEmbedder

postgres_databases = postgres_server.postgres_databases
stone = corpus_kit.stone


def test_a_tenant_has_its_own_corpora_and_files(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    with pytest.raises(NotFoundError):
        stone.workspace("acme").corpora.build(replace(BUILD, corpus_path="corpus.txt"))
    for path in ("../../corpus.txt", str(Path("data/corpus.txt").absolute())):
        with pytest.raises(InputError, match="outside of the data root"):
            stone.workspace("acme").corpora.build(replace(BUILD, corpus_path=path))
    Path("data/corpora/acme").mkdir(parents=True)
    Path("data/corpora/acme/corpus.txt").write_text(NEW)
    result = stone.workspace("acme").corpora.build(BUILD)
    theirs = live_ids(stone.workspace("acme"))
    assert files(stone, Path(result.metadata_path).parent) == (theirs, theirs)
    assert files(stone)[1] == live_ids(stone)
    with pytest.raises(InputError, match="outside of the data root"):
        stone.corpora.build(replace(AGAIN, corpus_path="corpora/acme/corpus.txt"))
    stone.erase("tenant", "acme")
    assert not Path(result.metadata_path).parent.parent.exists()
    assert len(live_ids(stone)) == 3


def test_files_follow_what_is_deleted(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    stone.ingest_items([Item("test", "x", "x", "One more sentence.")], kb=NAME)
    assert stone.corpora.health().bm25_index == "stale"
    corpus, added = sorted(stone.documents(kb=NAME), key=lambda one: one.source)
    stone.delete(added.id)
    assert stone.corpora.health().bm25_index == "loaded"
    stone.erase("document", corpus.id)
    assert files(stone) == (set(), set())
    stone.delete_kb(NAME)
    assert not list(Path("data/indices").glob("[!.]*"))


def test_the_default_tenants_files_go_with_it(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    stone.erase("tenant", "default")
    assert not list(Path("data/indices").glob("[!.]*"))


def test_files_go_along_with_a_new_name(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    ids = live_ids(stone)
    assert stone.rename_kb(NAME, "game").name == "game"
    assert (stone.corpora.health("game").bm25_index, stone.corpora.health("game").metadata) == ("loaded",) * 2
    assert live_ids(stone, "game") == ids
    assert not Path("data/indices/bm25_index.pkl").exists()
    assert not Path("data/indices/chunks.json").exists()
    assert stone.corpora.build(BUILD).total_chunks == 3
    assert not live_ids(stone) & ids


def test_two_builds_of_one_collection_do_not_meet(stone: Ragstone, tmp_path: Path) -> None:
    index, metadata = (tmp_path / "data" / "indices" / name for name in ("bm25_index.pkl", "chunks.json"))
    with FilePair(NAME, index, metadata).lock(), pytest.raises(StoreBusy, match="is being built already"):
        stone.corpora.build(BUILD)
    assert stone.kbs() == []


def test_a_build_whose_work_was_removed_replaces_nothing(stone: Ragstone, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a build on another machine, where the lock of this one is not seen."""
    stone.corpora.build(BUILD)
    ids = live_ids(stone)

    async def removed(_self: object, tenant: str, kb: KnowledgeBase, _: FilePair) -> None:
        async with stone.engine._components.ledger.transaction(tenant) as tx:
            await tx.delete_kb(kb.name)
            await tx.open_kb(kb.name, draft=True)

    monkeypatch.setattr("ragstone.engine.collections.Collections._validate", removed)
    with pytest.raises(StoreBusy, match="another build") as caught:
        stone.corpora.build(AGAIN)
    assert caught.value.retryable
    assert live_ids(stone) == ids
    assert [kb.name for kb in stone.kbs()] == [NAME]


def test_what_a_build_left_is_removed_by_the_next(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    leave_draft(stone, NAME)
    leave_draft(stone, "other")
    shutil.copy("data/indices/chunks.json", "data/indices/chunks.json.next1234")
    stone.corpora.build(AGAIN)
    assert [kb.name for kb in stone.kbs()] == [draft_prefix("other") + "01234567", NAME]
    assert sorted(path.name for path in Path("data/indices").glob("[!.]*")) == ["bm25_index.pkl", "chunks.json"]


@pytest.mark.req("R-REL-23")
def test_an_engine_starts_with_nothing_and_says_so(stone: Ragstone) -> None:
    health = asdict(stone.corpora.health())
    assert health == {
        "collection": NAME,
        "exists": False,
        "total_documents": 0,
        "total_chunks": 0,
        "bm25_index": "missing",
        "metadata": "missing",
    }
    stone.corpora.build(BUILD)
    Path("data/indices/bm25_index.pkl").unlink()
    health = asdict(stone.corpora.health())
    assert (health["exists"], health["total_documents"], health["total_chunks"]) == (True, 1, 3)
    assert (health["bm25_index"], health["metadata"]) == ("missing", "loaded")
    assert len(texts(stone)) == 3


def test_what_ragstone_keeps_in_the_data_folder_is_no_corpus(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    stone.search("lantern", kb=NAME)
    stone.upload(b"Some text.", "a.txt", kb="up")
    stone.activity.report()
    own = [path for path in Path("data").rglob("*") if path.is_file() and path != Path("data/corpus.txt")]
    assert len(own) > 5
    for path in own:
        with pytest.raises(InputError, match="outside of the data root"):
            stone.corpora.build(replace(AGAIN, corpus_path=str(path)))


@pytest.mark.req("R-ING-26")
def test_a_collection_in_postgresql(tmp_path: Path, fake_model: FakeEmbedder) -> None:
    Path("data").mkdir()
    Path("data/corpus.txt").write_text(OLD)
    store = {"ledger": {"dsn": server(18).database(tmp_path)}}
    with Ragstone(data_dir="data", store=store, chunking={"strategy": "sentence", "size": 8, "overlap": 0}) as stone:
        stone.corpora.build(BUILD)
        before = live_ids(stone)
        with pytest.raises(CollectionExists):
            stone.corpora.build(BUILD)
        Path("data/corpus.txt").write_text(NEW)
        stone.corpora.build(AGAIN)
        ids = live_ids(stone)
        assert not ids & before
        assert files(stone) == (ids, ids)
        assert len(texts(stone)) == len(ids) == 3
        assert [kb.name for kb in stone.kbs()] == [NAME]
        stone.rename_kb(NAME, "game")
        assert live_ids(stone, "game") == ids


def test_a_deletion_does_not_remove_what_another_machine_builds(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    draft = leave_draft(stone)
    stone.ingest_items([Item("test", "x", "x", "Something else.")], kb="other")
    assert stone.delete(stone.documents(kb="other")[0].id)
    stone.delete_kb("other")
    assert [kb.name for kb in stone.kbs()] == [draft, NAME]


@pytest.mark.parametrize("moment", ["embedding", "writing"])
def test_a_build_whose_work_was_removed_says_so(
    stone: Ragstone, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    stone.corpora.build(BUILD)
    ids = live_ids(stone)
    holder: Any = fake_model if moment == "embedding" else stone.engine._components.file_upkeep
    name = "embed" if moment == "embedding" else "write_aside"
    original = getattr(holder, name)

    async def removed(*args: Any) -> Any:
        ledger = stone.engine._components.ledger
        for kb in await ledger.of("default").kbs():
            if is_draft(kb.name):
                async with ledger.transaction("default") as tx:
                    await tx.delete_kb(kb.name)
        return await original(*args)

    monkeypatch.setattr(holder, name, removed)
    Path("data/corpus.txt").write_text(NEW)
    with pytest.raises(StoreBusy, match=r"another build of collection .* removed this one's work"):
        stone.corpora.build(AGAIN)
    monkeypatch.undo()
    assert live_ids(stone) == ids


def test_a_deletion_does_not_fail_with_the_files(stone: Ragstone, caplog: pytest.LogCaptureFixture) -> None:
    stone.corpora.build(BUILD)
    lock = Path(f"data/indices/.{NAME}.lock")
    lock.unlink()
    lock.mkdir()  # as in a folder that is not ours
    assert stone.delete(stone.documents(kb=NAME)[0].id)
    assert [one.outcome for one in stone.audit(action="document.delete")] == ["done", "begun"]
    assert f"the files of collection '{NAME}' are not up to date" in caplog.text
    with pytest.raises(StoreError, match="Is a directory") as caught:
        stone.corpora.build(AGAIN)
    assert caught.value.remedy == Remedy(Action.REPAIR_STORES)


@pytest.fixture
def writes(stone: Ragstone, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collections whose files were written since the fixture was made, in order."""
    upkeep = stone.engine._components.file_upkeep
    written: list[str] = []
    write_aside = upkeep.write_aside

    async def count(tenant: str, kb: KnowledgeBase, pair: FilePair) -> Any:
        written.append(pair.collection)
        return await write_aside(tenant, kb, pair)

    monkeypatch.setattr(upkeep, "write_aside", count)
    return written


def build_with_more(stone: Ragstone, count: int) -> list[str]:
    """Build the collection, add documents to it, and return the ids of these."""
    stone.corpora.build(BUILD)
    stone.ingest_items([Item("test", str(n), str(n), f"Barrel {n} holds salt.") for n in range(count)], kb=NAME)
    return [document.id for document in stone.documents(kb=NAME) if document.source == "test"]


@pytest.mark.req("R-SEC-11")
def test_a_receipt_is_issued_after_the_corpus_files_are_rewritten(
    stone: Ragstone, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stone.corpora.build(BUILD)
    (corpus,) = stone.documents(kb=NAME)
    eraser = stone.engine._components.eraser
    record_erasure = eraser._audit.record_erasure
    at_receipt: list[tuple[set[str], set[str]]] = []

    async def record(receipt: Receipt) -> None:
        at_receipt.append(files(stone))
        await record_erasure(receipt)

    monkeypatch.setattr(eraser._audit, "record_erasure", record)
    (receipt,) = stone.erase("document", corpus.id)
    assert receipt.complete
    assert at_receipt == [(set(), set())]


def test_corpus_files_are_rewritten_once_for_a_batch_of_deletions(stone: Ragstone, writes: list[str]) -> None:
    ids = build_with_more(stone, 4)
    writes.clear()
    assert stone.delete_many(*ids[:2], "0" * 32, ids[0]) == ids[:2]
    assert writes == [NAME]
    entries = stone.audit(action="document.delete")
    assert [(entry.outcome, entry.target) for entry in entries if entry.outcome == "denied"] == [("denied", "0" * 32)]
    assert sorted(entry.target for entry in entries if entry.outcome == "done") == sorted(ids[:2])
    receipts = stone.erase("document", *ids[2:])
    assert [receipt.complete for receipt in receipts] == [True, True]
    assert writes == [NAME, NAME]
    assert files(stone) == (live_ids(stone), live_ids(stone))


def test_a_deletion_that_fails_half_way_leaves_true_files(
    stone: Ragstone, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = build_with_more(stone, 2)
    begin = stone.engine._components.ledger.transaction
    transactions = iter([begin])

    def fail_second(tenant: str) -> Any:
        if (first := next(transactions, None)) is None:
            raise StoreError("the disk is gone")
        return first(tenant)

    with monkeypatch.context() as patch:
        patch.setattr(stone.engine._components.ledger, "transaction", fail_second)
        with pytest.raises(StoreError, match="the disk is gone"):
            stone.delete_many(*ids)
    live = live_ids(stone)
    assert len(live) == 4
    assert files(stone) == (live, live)


@pytest.mark.req("R-SEC-11")
def test_a_receipt_says_that_the_corpus_files_could_not_be_rewritten(
    stone: Ragstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = build_with_more(stone, 2)

    def full(*_: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ragstone.stores.corpus.files.put_in_place", full)
        (receipt,) = stone.erase("document", first)
    (unfinished,) = receipt.unfinished
    assert not receipt.complete
    assert unfinished.startswith("corpus files: the files of a collection cannot be read or written: [Errno 28]")
    assert "check the stores and repair them" in unfinished
    assert [entry.outcome for entry in stone.audit(action="document.erase")] == ["failed", "begun"]
    (receipt,) = stone.erase("document", second)
    assert receipt.complete
    assert files(stone) == (live_ids(stone), live_ids(stone))


def test_a_receipt_says_that_a_build_has_the_corpus_files(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    pair = FilePair(NAME, Path("data/indices/bm25_index.pkl"), Path("data/indices/chunks.json"))
    with pair.lock():
        (receipt,) = stone.erase("document", stone.documents(kb=NAME)[0].id)
    (unfinished,) = receipt.unfinished
    assert not receipt.complete
    assert unfinished.startswith("corpus files: ")
    assert "being built" in unfinished


def test_what_is_no_collections_folder_is_passed_over(stone: Ragstone) -> None:
    result = stone.corpora.build(replace(BUILD, collection="game"))
    folder = Path(result.metadata_path).parent.parent
    (folder / ".DS_Store").write_text("x")
    (folder / "notes").write_text("x")
    stone.delete(stone.documents(kb="game")[0].id)
    assert files(stone, folder / "game") == (set(), set())


def test_files_that_cannot_be_put_in_place_do_not_undo_a_build(
    stone: Ragstone, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stone.corpora.build(BUILD)
    Path("data/corpus.txt").write_text(NEW)

    def full(*_: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ragstone.stores.corpus.files.put_in_place", full)
        result = stone.corpora.build(AGAIN)
    assert (result.total_chunks, result.metadata_path) == (3, "data/indices/chunks.json")
    assert "No space left on device" in caplog.text
    assert stone.corpora.health().metadata == "stale"
    assert "griffin" in " ".join(texts(stone))
    stone.ingest_items([Item("test", "x", "x", "Something else.")], kb="other")
    stone.delete(stone.documents(kb="other")[0].id)
    ids = live_ids(stone)
    assert files(stone) == (ids, ids)


def test_only_builds_call_a_kb_like_their_drafts(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    name = draft_prefix(NAME) + "01234567"
    for refused in (
        lambda: stone.ingest_items([Item("test", "x", "x", "Something.")], kb=name),
        lambda: stone.upload(b"Something.", "x.txt", kb=name),
        lambda: stone.rename_kb(NAME, name),
        lambda: stone.corpora.build(replace(BUILD, collection=name)),
    ):
        with pytest.raises(InputError, match="like a collection that is being built"):
            refused()
    near = draft_prefix(NAME) + "mine"
    stone.ingest_items([Item("test", "x", "x", "Something.")], kb=near)
    stone.corpora.build(AGAIN)
    assert [kb.name for kb in stone.kbs()] == [near, NAME]


def test_who_looks_at_a_chunk_is_recorded(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    hit = stone.search("dragon", kb=NAME).hits[0]
    assert stone.corpora.chunk(hit.chunk_id)
    assert stone.corpora.chunk("0" * 32) is None
    assert [(one.outcome, one.target, one.kb) for one in stone.audit(action="document.read")] == [
        ("denied", "0" * 32, ""),
        ("done", hit.document_id, NAME),
    ]


def test_what_was_asked_of_a_collection_that_is_replaced_is_forgotten(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    assert "mill" in stone.ask("Where does the dragon sleep?", conversation="c", kb=NAME).answer
    hit = stone.search("dragon", kb=NAME).hits[0]
    stone.feedback("dragon", [hit.chunk_id], kb=NAME)
    stone.activity.add_golden("dragon", [hit.document_id], kb=NAME)
    Path("data/corpus.txt").write_text(NEW)
    stone.corpora.build(AGAIN)
    asked = stone.activity.searches(kb=NAME)
    assert [(one.query, one.shown) for one in asked] == [("dragon", ()), ("Where does the dragon sleep?", ())]
    (file,) = Path("data").glob("tenants/*/ledger.db")
    with closing(sqlite3.connect(file)) as db:
        for table in ("votes", "golden_queries", "turn_documents"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert db.execute("SELECT question, answer FROM turns").fetchall() == [("Where does the dragon sleep?", "")]
