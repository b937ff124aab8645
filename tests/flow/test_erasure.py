"""What is erased is gone from every store, also when something dies or is down on the way, and the receipt is true."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone import Engine as RagstoneEngine
from ragstone import Item, Ragstone, open_engine
from ragstone.core.audit import ErasureTarget, Receipt
from ragstone.core.clock import canonical, now
from ragstone.core.errors import NotFoundError, StoreBusy
from ragstone.core.remedies import Action, Remedy, advise
from ragstone.core.types import Candidate, KnowledgeBase, NewVersion
from ragstone.core.vectors import VectorPartition
from ragstone.engine.erasure import Eraser
from ragstone.settings.tree import Adapter, Settings
from ragstone.stores import factory as opening
from ragstone.stores.activity import removal
from ragstone.stores.blobs import Blobs
from ragstone.stores.corpus.upkeep import FileUpkeep
from ragstone.stores.factory import Stores, open_stores
from ragstone.stores.health.check import examine
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger import erasure as erasure_counts
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.testing.builders import make_version, put, unit_vectors
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
CANARY = "xylocaneb"
SearchedEngine = tuple[RagstoneEngine, str]


class Killed(BaseException):
    """What ends a process without asking anyone."""


class Engine(MemoryProvider):
    """A vector database that outlives who uses it, and has bad days."""

    name = "engine"

    def __init__(self) -> None:
        super().__init__(Adapter(kind="memory"), Path(), "collection")
        self.trouble: BaseException | None = None

    async def delete(self, place: VectorPartition, chunk_ids: Sequence[str]) -> None:
        self._suffer()
        await super().delete(place, chunk_ids)

    async def drop(self, place: VectorPartition) -> None:
        self._suffer()
        await super().drop(place)

    async def close(self) -> None:
        pass

    def _suffer(self) -> None:
        if self.trouble:
            raise self.trouble


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The vector database of all stores that are opened with `vectors: chroma`."""
    made = Engine()
    monkeypatch.setattr(opening, "open_provider", lambda *_: made)
    return made


@pytest.fixture(params=["sqlite", "postgres", "elsewhere"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path, engine: Engine) -> AsyncIterator[Stores]:
    opened = open_kind(request.param, tmp_path)
    yield opened
    await opened.close()


def open_kind(kind: str, folder: Path) -> Stores:
    chosen: dict[str, Any] = {"vectors": "chroma"} if kind == "elsewhere" else {}
    if kind == "postgres":
        ledger = {"kind": "postgres", "dsn": server(18).database(folder)}
        chosen = {"ledger": ledger, "vectors": "pgvector", "lexical": "postgres"}
    return open_stores(Settings.model_validate({"data_dir": folder, "store": chosen}))


def open_eraser(stores: Stores) -> Eraser:
    index = ResidentBm25Index(stores.ledger, IndexCache(16))
    return Eraser(stores, FileUpkeep(stores.ledger, stores.corpora, index))


def document(name: str, words: str = "harbour", **more: str) -> NewVersion:
    texts = [f"{words} {name} part {n}" for n in range(3)]
    return make_version(name, texts, vectors=unit_vectors(3, seed=sum(map(ord, name))), **more)


async def found(stores: Stores, kb: KnowledgeBase, words: str, like: NewVersion) -> int:
    """How much two searches find of a document."""
    assert like.vectors is not None
    by_word = await stores.lexical.search("default", kb, words, 10)
    by_vector = await stores.vectors.search("default", kb, like.vectors[0], 1)
    exact = [one for one in by_vector if one.score > 0.99]
    return len(by_word) + len(exact)


def left(receipt: Receipt) -> int:
    return sum(sum(counts.values()) for counts in receipt.remaining.values())


@pytest.mark.req("R-SEC-11", "R-DOM-05")
async def test_a_document_is_erased_and_nobody_else_s(stores: Stores) -> None:
    secret = document("secret", CANARY)
    kb = await put(stores.ledger, secret, *(document(f"d{n}") for n in range(20)))
    await stores.ledger.of("default").keep_originals([(document("d1").document_id, b"of another")])
    assert await found(stores, kb, CANARY, secret) == 4
    (receipt,) = await open_eraser(stores).erase("default", [ErasureTarget("document", secret.document_id)])
    rows = receipt.removed["ledger"]
    assert (rows["documents"], rows["chunks"], rows["vectors"], rows["terms"], rows["postings"]) == (1, 3, 3, 3, 3)
    assert (receipt.complete, receipt.requery, left(receipt), receipt.unfinished) == (True, 0, 0, ())
    assert receipt.scrubbed == (type(stores.ledger).__name__ == "SqliteLedger")
    if stores.derived:
        assert (receipt.removed["engine"], receipt.remaining["engine"]) == ({"points": 3}, {"points": 0})
    assert await found(stores, kb, CANARY, secret) == 0
    assert (await stores.ledger.of("default").stats(kb)).chunks == 60


async def test_files_of_a_collection_that_cannot_be_written_are_told_of(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: FileUpkeep, tenant: str) -> list[StoreBusy]:
        return [StoreBusy("bm25_index.pkl is locked")]

    stores = open_kind("sqlite", tmp_path)
    version = document("a")
    await put(stores.ledger, version)
    monkeypatch.setattr(FileUpkeep, "refresh", refuse)
    (receipt,) = await open_eraser(stores).erase("default", [ErasureTarget("document", version.document_id)])
    assert not receipt.complete
    (unfinished,) = receipt.unfinished
    assert unfinished.startswith("corpus files: bm25_index.pkl is locked")
    assert unfinished.endswith("the next deletion or build writes them")
    await stores.close()


async def test_a_file_that_cannot_be_scrubbed_is_told_of(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: SqliteLedger, tenant: str, kbs: Sequence[str]) -> bool:
        raise StoreBusy("ledger.db is being read")

    stores = open_kind("sqlite", tmp_path)
    version = document("a")
    await put(stores.ledger, version)
    monkeypatch.setattr(SqliteLedger, "scrub", refuse)
    (receipt,) = await open_eraser(stores).erase("default", [ErasureTarget("document", version.document_id)])
    assert not receipt.scrubbed
    assert [entry.partition(";")[0] for entry in receipt.unfinished] == ["ledger: ledger.db is being read"]
    await stores.close()


async def test_many_are_erased_together_each_with_its_receipt(stores: Stores) -> None:
    versions = [document(f"d{n}") for n in range(6)]
    kb = await put(stores.ledger, *versions)
    targets = [ErasureTarget("document", version.document_id) for version in versions[:4]]
    receipts = await open_eraser(stores).erase("default", [*targets, ErasureTarget("document", "0" * 32)])
    assert [receipt.target for receipt in receipts] == targets
    assert all(receipt.complete and receipt.removed["ledger"]["chunks"] == 3 for receipt in receipts)
    assert (await stores.ledger.of("default").stats(kb)).documents == 2


async def test_a_kb_is_erased(stores: Stores) -> None:
    kept = await put(stores.ledger, document("kept"))
    await put(stores.ledger, document("a", CANARY, kb="old"), document("b", CANARY, kb="old"), kb="old")
    (receipt,) = await open_eraser(stores).erase("default", [ErasureTarget("kb", "old")])
    assert receipt.complete
    assert (receipt.removed["ledger"]["documents"], receipt.removed["ledger"]["spaces"]) == (2, 1)
    if stores.derived:
        assert receipt.removed["engine"] == {"points": 6}
    assert await stores.ledger.of("default").kb("old") is None
    assert (await stores.ledger.of("default").stats(kept)).documents == 1


async def test_a_source_is_erased_in_its_own_kb_only(stores: Stores) -> None:
    await put(stores.ledger, document("a"), document("b"), document("c", source="other"))
    await put(stores.ledger, document("a", kb="two"), kb="two")
    (receipt,) = await open_eraser(stores).erase("default", [ErasureTarget("source", "test", "default")])
    assert (receipt.complete, receipt.removed["ledger"]["documents"]) == (True, 2)
    counts = [(await stores.ledger.of("default").stats(kb)).documents for kb in await stores.ledger.of("default").kbs()]
    assert counts == [1, 1]


async def test_what_a_crash_left_staged_is_swept(stores: Stores) -> None:
    kb = await put(stores.ledger, document("kept"))
    async with stores.ledger.transaction("default") as tx:
        await tx.stage(kb, document("kept", CANARY))
        await tx.stage(kb, document("new", CANARY))
    old = canonical(now() - timedelta(hours=2))
    await stores.ledger.write(
        "default",
        lambda db, tenant_id: db.execute(
            "UPDATE versions SET created_at = ? WHERE tenant_id = ? AND (version = 2 OR document_id = ?)",
            (old, tenant_id, document("new").document_id),
        ),
    )
    await stores.ledger.clean_up("default")
    rows = await stores.ledger.read("default", erasure_counts.count_tenant)
    assert (rows["documents"], rows["versions"], rows["chunks"], rows["vectors"]) == (1, 1, 3, 3)


async def test_what_is_staged_where_a_document_moves_to_goes_wholly(stores: Stores) -> None:
    moved, staged = document("old"), document("new", CANARY)
    kb = await put(stores.ledger, moved)
    async with stores.ledger.transaction("default") as tx:
        number = await tx.stage(kb, staged)
    await stores.ledger.prepare("default", kb, [(staged.document_id, number)])
    async with stores.ledger.transaction("default") as tx:
        await tx.move(moved.document_id, "new", "test:new")
    await stores.ledger.catch_up("default")
    rows = await stores.ledger.read("default", erasure_counts.count_tenant)
    assert [rows[name] for name in ("documents", "versions", "chunks", "terms", "vectors")] == [1, 1, 3, 3, 3]
    if stores.derived:
        assert await stores.derived.provider.count(VectorPartition(await _tenant_id(stores), "s1", 32)) == 3


async def test_a_store_that_was_left_is_told_of(engine: Engine, tmp_path: Path) -> None:
    secret, kept = document("secret", CANARY), document("kept")
    before = open_kind("elsewhere", tmp_path)
    await put(before.ledger, secret, kept)
    await put(before.ledger, document("b", kb="old"), kb="old")
    await put(before.ledger, document("a", tenant="acme"), tenant="acme")
    await before.close()
    place = VectorPartition(await _tenant_id(before), "s1", 32)
    after = open_kind("sqlite", tmp_path)
    await put(after.ledger, document("later", kb="later"), kb="later")
    targets = [ErasureTarget("document", secret.document_id), ErasureTarget("kb", "old"), ErasureTarget("kb", "later")]
    receipts = await open_eraser(after).erase("default", targets)
    said = advise(
        "engine: may still hold it and is not in use any more", Remedy(Action.FINISH_LEFT_STORE, store="engine")
    )
    assert [receipt.unfinished for receipt in receipts] == [(said,), (said,), ()]
    assert [receipt.complete for receipt in receipts] == [False, False, True]
    receipt = await open_eraser(after).erase_tenant("acme")
    assert not receipt.complete
    assert receipt.unfinished[0].startswith("engine: holds vectors of tenant ")
    await after.close()
    assert await engine.count(place) == 6
    again = open_kind("elsewhere", tmp_path)
    await examine(again, repair=True)
    assert (await engine.count(place), await engine.count(VectorPartition(place.tenant_id, "s2", 32))) == (3, 0)
    (receipt,) = await open_eraser(again).erase("default", [ErasureTarget("document", kept.document_id)])
    assert receipt.complete
    await again.close()


@pytest.mark.req("R-TEN-15", "R-DOM-05")
async def test_a_tenant_is_erased_in_one_operation(stores: Stores, tmp_path: Path) -> None:
    kept = await put(stores.ledger, document("kept"))
    await put(stores.ledger, document("a", CANARY, tenant="acme"), tenant="acme")
    await stores.ledger.of("acme").keep_originals([("a" * 32, CANARY.encode())])
    receipt = await open_eraser(stores).erase_tenant("acme")
    assert (receipt.complete, receipt.requery, left(receipt)) == (True, 0, 0)
    assert receipt.removed["ledger"]["chunks"] == 3
    assert receipt.removed["files"]["files"] >= 1
    if stores.derived:
        assert receipt.removed["engine"] == {"points": 3}
    assert [tenant.name for tenant in await stores.tenants.all()] == ["default"]
    assert (await stores.ledger.of("default").stats(kept)).documents == 1
    assert _files_with(tmp_path, CANARY) == []
    with pytest.raises(NotFoundError, match="there is no tenant 'acme'"):
        await open_eraser(stores).erase_tenant("acme")


async def test_an_engine_that_is_down_is_told_of_and_made_up_for(engine: Engine, tmp_path: Path) -> None:
    stores = open_kind("elsewhere", tmp_path)
    secret = document("secret", CANARY)
    kb = await put(stores.ledger, secret, document("other"))
    engine.trouble = StoreBusy("the engine is down", hint="start it")
    (receipt,) = await open_eraser(stores).erase("default", [ErasureTarget("document", secret.document_id)])
    assert (receipt.complete, receipt.requery, receipt.remaining["engine"]) == (False, 3, {"points": 3})
    assert receipt.unfinished[0].startswith("vectors: the engine is down; start it; the next search")
    assert set(receipt.remaining["ledger"].values()) == {0}
    assert receipt.removed["engine"] == {"points": 0}
    engine.trouble = None
    assert await found(stores, kb, CANARY, secret) == 0
    await stores.ledger.catch_up("default")
    assert await engine.count(VectorPartition(await _tenant_id(stores), "s1", 32)) == 3
    await stores.close()


@pytest.mark.parametrize("what", ["document", "kb"])
async def test_who_dies_between_ledger_and_engine_leaves_it_to_the_next(
    engine: Engine, tmp_path: Path, what: str
) -> None:
    secret = document("secret", CANARY, kb="old")
    stores = open_kind("elsewhere", tmp_path)
    kb = await put(stores.ledger, secret, kb="old")
    place = VectorPartition(await _tenant_id(stores), "s1", 32)
    target = ErasureTarget("document", secret.document_id) if what == "document" else ErasureTarget("kb", "old")
    engine.trouble = Killed()
    with pytest.raises(Killed):
        await open_eraser(stores).erase("default", [target])
    await stores.close()
    engine.trouble = None
    assert await engine.count(place) == 3
    again = open_kind("elsewhere", tmp_path)
    assert secret.vectors is not None
    assert await again.vectors.search("default", kb, secret.vectors[0], 5) == []
    assert await engine.count(place) == 0
    await again.close()


async def test_who_dies_between_ledger_and_files_leaves_them_to_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    stores = open_kind("sqlite", tmp_path)
    secret = document("secret", CANARY)
    await put(stores.ledger, secret)
    (name,) = await stores.ledger.of("default").keep_originals([(secret.document_id, CANARY.encode())])

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Blobs, "remove", die)
        patch.setattr(Blobs, "list_old", die)
        with pytest.raises(Killed):
            await open_eraser(stores).erase("default", [ErasureTarget("document", secret.document_id)])
    _make_old(tmp_path, name)
    await stores.ledger.clean_up("default")
    assert _files_with(tmp_path / "documents", CANARY) == []
    await stores.close()


async def test_a_file_that_may_be_on_its_way_in_is_kept_and_told_of(tmp_path: Path, engine: Engine) -> None:
    stores = open_kind("sqlite", tmp_path)
    secret = document("secret", CANARY)
    await put(stores.ledger, secret)
    (name,) = await stores.ledger.of("default").keep_originals([(secret.document_id, b"newer bytes")])
    (receipt,) = await open_eraser(stores).erase("default", [ErasureTarget("document", secret.document_id)])
    assert (receipt.complete, receipt.remaining["files"]) == (False, {"originals": 1})
    assert receipt.unfinished[0].endswith(f"a worker, or {Action.REPAIR_STORES.sentence}")
    assert (await stores.ledger.blobs("default")).get(secret.document_id, name) == b"newer bytes"
    await stores.close()


async def test_a_tenant_s_deletion_that_an_engine_holds_up_is_finished_by_asking_again(
    engine: Engine, tmp_path: Path
) -> None:
    stores = open_kind("elsewhere", tmp_path)
    await put(stores.ledger, document("a", tenant="acme"), tenant="acme")
    engine.trouble = StoreBusy("the engine is down")
    receipt = await open_eraser(stores).erase_tenant("acme")
    assert not receipt.complete
    assert advise("", Remedy(Action.FINISH_TENANT_DELETION, tenant="acme")) in receipt.unfinished[0]
    engine.trouble = None
    assert (await open_eraser(stores).erase_tenant("acme")).complete
    assert await stores.tenants.all() == []
    await stores.close()


def test_an_uploaded_document_leaves_no_byte_behind(tmp_path: Path, fake_model: FakeEmbedder) -> None:
    uploaded: list[str] = []
    with Ragstone(data_dir=tmp_path / "data") as stone:
        for number in range(50):
            words = CANARY if number == 20 else f"harbour{number}"
            content = f"# About {words}\n\nThe {words} was painted in 19{number}.\n".encode()
            status = stone.upload(content, f"{words}.md", metadata={"about": words})
            uploaded.append(status.document_id)
        chosen = uploaded[20]
        stone.work()
        stone.search(CANARY)
        assert stone.stats().documents == 50
        (receipt,) = stone.erase("document", chosen)
        assert receipt.complete
        assert (receipt.removed["files"], receipt.removed["ledger"]["jobs"]) == ({"originals": 1}, 1)
        assert receipt.removed["ledger"]["notices"] == 1
        assert _files_with(tmp_path / "data", CANARY) == []
        assert CANARY not in " ".join(hit.text for hit in stone.search(CANARY, k=50).hits)
        assert stone.erase("document", chosen) == []
        assert stone.stats().documents == 49
        assert stone.erase("tenant", "default")[0].complete


@pytest.fixture
async def searched(tmp_path: Path, fake_model: FakeEmbedder) -> AsyncIterator[SearchedEngine]:
    """An engine with a document that a search has found and a user has voted for."""
    async with open_engine(Settings(data_dir=tmp_path / "data")) as opened:
        workspace = workspace_of(opened)
        await workspace.documents.ingest_items([Item("test", CANARY, CANARY, f"The {CANARY} was painted.".encode())])
        (hit,) = (await workspace.search(CANARY)).hits
        await workspace.feedback.vote(CANARY, [hit.chunk_id])
        await opened._components.search_log.flush()
        yield opened, hit.document_id


async def test_what_is_remembered_of_a_document_is_counted_and_goes_with_it(searched: SearchedEngine) -> None:
    engine, chosen = searched
    (receipt,) = await workspace_of(engine).erase("document", chosen)
    assert (receipt.removed["activity"], receipt.remaining["activity"]) == ({"rows": 2}, {"rows": 0})
    assert receipt.complete
    # The query itself may say what the document says.
    assert await engine._components.ledger.read_log("default", removal.count_tenant_log, 0) == 0


async def test_what_the_log_still_tells_of_a_document_is_counted(
    searched: SearchedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: SqliteLedger, tenant: str, removed: object) -> None:
        raise StoreBusy("the log is being read")

    engine, chosen = searched
    monkeypatch.setattr(SqliteLedger, "forget_logged", refuse)
    (receipt,) = await workspace_of(engine).erase("document", chosen)
    assert (receipt.removed["activity"], receipt.remaining["activity"]) == ({"rows": 1}, {"rows": 1})
    assert not receipt.complete
    assert receipt.unfinished[0].startswith("activity: the log is being read")


async def test_what_is_remembered_of_a_tenant_is_counted_and_goes_with_it(searched: SearchedEngine) -> None:
    engine, _ = searched
    receipt = await engine.erase_tenant("default")
    assert (receipt.removed["activity"], receipt.remaining["activity"]) == ({"rows": 2}, {"rows": 0})


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
async def test_what_an_index_still_finds_is_told_of(stores: Stores) -> None:
    version, eraser = document("secret", CANARY), open_eraser(stores)
    kb = await put(stores.ledger, version)
    stale = await stores.lexical.search("default", kb, CANARY, 10)
    assert len(stale) == 3

    async def find_stale(*_: object) -> list[Candidate]:
        return stale

    eraser._lexical = SimpleNamespace(search=find_stale)  # type: ignore[assignment]
    (receipt,) = await eraser.erase("default", [ErasureTarget("document", version.document_id)])
    assert (receipt.requery, receipt.complete) == (3, False)


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
async def test_another_kb_of_the_same_name_is_not_searched_for_what_was_erased(stores: Stores) -> None:
    eraser = open_eraser(stores)
    old = await put(stores.ledger, document("a"))
    assert await eraser._searchable("default", old) == old
    await eraser.erase("default", [ErasureTarget("kb", old.name)])
    assert await eraser._searchable("default", old) is None
    made = await put(stores.ledger, document("b"))
    assert made.id != old.id
    assert await eraser._searchable("default", old) is None
    assert await eraser._searchable("nobody", old) is None


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
async def test_search_results_that_processes_share_go_with_a_document(stores: Stores) -> None:
    forgotten = []

    async def forget(tenant_id: str) -> None:
        forgotten.append(tenant_id)

    version, eraser = document("a"), open_eraser(stores)
    await put(stores.ledger, version)
    eraser._shared_cache = SimpleNamespace(forget=forget)  # type: ignore[assignment]
    await eraser.erase("default", [ErasureTarget("document", version.document_id)])
    assert forgotten == [await _tenant_id(stores)]


async def _tenant_id(stores: Stores) -> str:
    return await stores.ledger.read("default", lambda _, tenant_id: tenant_id)


def _files_with(folder: Path, words: str) -> list[str]:
    return [one.name for one in folder.rglob("*") if one.is_file() and words.encode() in one.read_bytes()]


def _make_old(folder: Path, name: str) -> None:
    (place,) = folder.rglob(name)
    os.utime(place, (time.time() - 7200,) * 2)
