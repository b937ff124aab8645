"""What the designs call a vector DB, walked through as docs/reference/seeds.md maps it, on real stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.unit.ingest.kit import parsed

import ragstone
from ragstone import Engine, Item, Ragstone, load_settings
from ragstone.core.collections import BuildRequest, collection_name
from ragstone.core.errors import CollectionExists, InputError, ModelMismatch, NotFoundError, StoreBusy
from ragstone.core.filters import parse_filter
from ragstone.core.jobs import NewJob, Priority
from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import Hit, KnowledgeBase
from ragstone.core.vectors import Point, VectorPartition
from ragstone.engine.components import Components
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.embed import ModelChoice
from ragstone.ingest.pipeline import IngestPipeline
from ragstone.ingest.prepare import PrepareOptions, Preparer
from ragstone.ingest.verify import Verifier
from ragstone.settings.tree import Adapter, ChunkingSettings, Settings
from ragstone.stores.corpus.files import CorpusFiles, load_metadata
from ragstone.stores.corpus.upkeep import FileUpkeep
from ragstone.stores.factory import Stores, open_provider, open_stores
from ragstone.stores.indexes import IndexCache
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.stores.lexical.bm25_file import DEFAULT_PATH
from ragstone.testing.builders import MODEL, make_version, put
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

EAST, NORTH, BETWEEN = (np.array(row, np.float32) for row in ([1, 0], [0, 1], [0.8, 0.6]))


@pytest.fixture(params=["sqlite", "chroma"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """`initialize(config)`, and `close`."""
    config = {"data_dir": tmp_path / "data", "store": {"vectors": request.param}}
    opened = open_stores(Settings.model_validate(config))
    yield opened
    await opened.close()


@pytest.mark.req("R-STO-01", "R-DOM-27")
async def test_a_vector_db_with_collections(stores: Stores, tmp_path: Path) -> None:
    ledger = stores.ledger
    assert await ledger.of("default").kb("corpus_embeddings") is None  # collection_exists
    async with ledger.transaction("default") as tx:  # create_collection(name, dimension)
        kb = await tx.open_space(await tx.open_kb("corpus_embeddings"), MODEL, 2)
    assert await ledger.of("default").kb("corpus_embeddings") == kb
    assert kb.space is not None
    assert kb.space.dimension == 2
    with pytest.raises(ModelMismatch):
        async with ledger.transaction("default") as tx:
            await tx.open_space(kb, MODEL, 3)
    versions = [  # add_documents: id, text, embedding and metadata of each
        make_version(name, (text,), vectors=vector[None], kb=kb.name, metadata={"colour": colour})
        for name, text, vector, colour in (("a", "the east gate", EAST, "red"), ("b", "the north gate", NORTH, "blue"))
    ]
    async with ledger.transaction("default") as tx:
        numbers = await tx.stage_all(kb, versions)
    staged = [(one.document_id, number) for one, number in zip(versions, numbers, strict=True)]
    await ledger.prepare("default", kb, staged)
    assert await stores.vectors.search("default", kb, EAST, 10) == []  # not yet
    async with ledger.transaction("default") as tx:
        await tx.activate_all(kb, staged)

    async def search(k: int, **filters: str) -> list[tuple[str, float]]:
        found = await stores.vectors.search("default", kb, BETWEEN, k, parse_filter(filters or None))
        chunks = await ledger.of("default").chunks(kb, [one.chunk_id for one in found])
        return [(chunks[one.chunk_id].chunk.text, round(one.score, 2)) for one in found]

    assert await search(10) == [("the east gate", 0.8), ("the north gate", 0.6)]
    assert await search(1) == [("the east gate", 0.8)]
    assert await search(10, colour="blue") == [("the north gate", 0.6)]
    stats = await ledger.of("default").stats(kb)  # get_collection_stats
    assert (stats.documents, stats.chunks, stats.model) == (2, 2, MODEL)
    async with ledger.transaction("default") as tx:  # delete_collection
        assert await tx.delete_kb(kb.name) == 2
    assert await ledger.of("default").kb(kb.name) is None
    assert await stores.vectors.search("default", kb, EAST, 10) == []


async def test_what_was_added_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    config = Settings.model_validate({"data_dir": tmp_path, "store": {"vectors": "chroma"}})
    first = open_stores(config)
    async with first.ledger.transaction("default") as tx:
        kb = await tx.open_kb("default")
    version = make_version(vectors=EAST[None])
    async with first.ledger.transaction("default") as tx:
        kb = await tx.open_space(kb, MODEL, 2)
        number = await tx.stage(kb, version)
    await first.ledger.prepare("default", kb, [(version.document_id, number)])
    async with first.ledger.transaction("default") as tx:
        await tx.activate(kb, version.document_id, number)
    await first.close()
    second = open_stores(config)  # close let go of Chroma's folder, or this could not have it
    assert [round(one.score, 2) for one in await second.vectors.search("default", kb, EAST, 5)] == [1.0]
    await second.close()


@pytest.mark.req("R-STO-02")
@pytest.mark.parametrize("kind", ["chroma", "qdrant", "memory"])
async def test_a_vector_store_that_knows_tenants(kind: str, tmp_path: Path) -> None:
    provider = open_provider(Settings(data_dir=tmp_path), Adapter(kind=kind))
    ours, theirs = (VectorPartition(tenant, "s1", 2) for tenant in ("a" * 32, "b" * 32))
    for place in (ours, theirs):
        await provider.open(place)
    ids = ["0" * 31 + digit for digit in "123"]
    points = [
        Point(one, vector, {"tenant_id": "a" * 32, "space": "s1", "chunk_id": one, "chunk_index": 0, "kind": name})
        for one, vector, name in zip(ids, (EAST, NORTH, BETWEEN), "xyx", strict=True)
    ]
    await provider.upsert(ours, points)
    await provider.upsert(ours, points[:1])  # the same again is the same
    found = await provider.search(ours, EAST, 5)
    assert [(one.chunk_id, round(one.score, 1)) for one in found] == [(ids[0], 1.0), (ids[2], 0.8), (ids[1], 0.0)]
    where = parse_filter({"kind": "y"})
    assert where is not None
    assert provider.can_filter(where)
    assert [one.chunk_id for one in await provider.search(ours, EAST, 5, where)] == [ids[1]]
    assert await provider.search(theirs, EAST, 5) == []
    await provider.delete(theirs, ids)
    assert await provider.count(ours) == 3
    await provider.delete(ours, ids[:1])
    assert await provider.count(ours) == 2
    assert {one.chunk_id for one in await provider.search(ours, EAST, 5)} == set(ids[1:])
    await provider.close()


@pytest.fixture
def stone(fake_model: FakeEmbedder) -> Ragstone:
    return Ragstone(data_dir="data")


@pytest.mark.req("R-STO-02")
def test_upsert_search_and_delete_by_tenant(stone: Ragstone) -> None:
    with stone:
        for tenant, words in (("acme", "The ferry sails at noon."), ("globex", "The ferry is full.")):
            stone.workspace(tenant).ingest_items([Item("test", "a", "a", words, metadata={"kind": tenant})])
        (ours,) = stone.workspace("acme").search("ferry", k=5).hits
        assert ours.text == "The ferry sails at noon."
        assert stone.workspace("acme").search("ferry", k=5, where={"kind": "globex"}).hits == ()
        assert stone.workspace("globex").delete(ours.document_id) is False
        assert stone.workspace("acme").delete(ours.document_id) is True
        assert stone.workspace("acme").search("ferry", k=5).hits == ()
        assert len(stone.workspace("globex").search("ferry", k=5).hits) == 1
        assert load_settings(overrides={"profile": "tulia"}, environment={}).retrieval.k == 5


@pytest.mark.req("R-STO-03")
def test_insert_get_all_rename_and_create_if_not_there(stone: Ragstone) -> None:
    items = [Item("test", name, name, f"The ferry {name} sails.") for name in ("ada", "bea")]
    with stone:
        assert stone.ingest_items(items, kb="boats").added == 2  # insert, and the collection with it
        (made,) = stone.kbs()
        assert stone.ingest_items(items, kb="boats").unchanged == 2  # create_collection_if_not_exists
        assert list(stone.kbs()) == [made]
        before = {one.external_id: one.id for one in stone.documents(kb="boats")}  # get_all
        assert before.keys() == {"ada", "bea"}
        stone.search("ferry", kb="boats")
        stone.feedback("ferry", [stone.chunks(before["ada"])[0].id], "used", kb="boats")
        stone.rename_kb("boats", "ships")
        assert [(kb.id, kb.name) for kb in stone.kbs()] == [(made.id, "ships")]
        assert {one.external_id: one.id for one in stone.documents(kb="ships")} == before
        assert len(stone.search("ferry", k=5, kb="ships").hits) == 2
        with pytest.raises(NotFoundError):
            stone.search("ferry", kb="boats")
        assert len(stone.activity.votes(kb="ships")) == 1
        # The old name is free: what comes in under it is something else.
        assert stone.ingest_items(items, kb="boats").added == 2
        again = {one.external_id: one.id for one in stone.documents(kb="boats")}
        assert not set(again.values()) & set(before.values())
        with pytest.raises(CollectionExists):
            stone.rename_kb("boats", "ships")
        with pytest.raises(NotFoundError):
            stone.workspace("somebody").rename_kb("boats", "fleet")
        with pytest.raises(InputError):
            stone.rename_kb("boats", "../fleet")


def test_an_upload_under_a_freed_name_is_another_document(stone: Ragstone) -> None:
    with stone:
        first = stone.upload(b"The ferry sails.", "a.txt", kb="boats").document_id
        stone.work()
        stone.rename_kb("boats", "ships")
        second = stone.upload(b"The ferry sails.", "a.txt", kb="boats").document_id
        assert stone.upload(b"The ferry sails.", "a.txt", kb="boats").document_id == second != first
        stone.work()
        assert [one.id for one in stone.documents(kb="ships")] == [first]
        assert [one.id for one in stone.documents(kb="boats")] == [second]


async def test_a_kb_that_a_job_works_on_keeps_its_name(tmp_path: Path) -> None:
    opened = open_stores(Settings(data_dir=tmp_path))
    kb = await put(opened.ledger, make_version())
    job = NewJob("sync", source="s", external_id="", uri="s", priority=Priority.BATCH)
    async with opened.ledger.transaction("default") as tx:
        await tx.enqueue(kb, job)
    async with opened.ledger.transaction("default") as tx:
        await tx.run(lambda db, tenant: db.execute("UPDATE jobs SET state = 'running'"))
    with pytest.raises(StoreBusy, match="1 running jobs"):
        async with opened.ledger.transaction("default") as tx:
            await tx.rename_kb(kb, "other")
    await opened.close()


@pytest.mark.req("R-TEN-02")
def test_a_store_of_one_tenant_by_source_type(stone: Ragstone) -> None:
    """get_collection_name(source_type), search(query, source_type, top_k), ingest(documents, source_type)."""
    assert [collection_name("email", tenant) for tenant in ("default", "acme")] == ["emails_default", "emails_acme"]
    with stone:
        assert stone.engine.settings.tenant == "default"
        for tenant in ("default", "acme"):
            for kind in ("email", "paper"):
                text = f"The ferry of {tenant} in one {kind}."
                item = Item("test", kind, kind, text, metadata={"source_type": kind})
                assert stone.workspace(tenant).ingest_items([item]).added == 1
        names = [[one.name for one in stone.workspace(tenant).collections()] for tenant in ("default", "acme")]
        assert names == [["emails_default", "papers_default"], ["emails_acme", "papers_acme"]]
        found = stone.workspace("acme").search("ferry", where={"source_type": "email"}).hits
        assert [hit.text for hit in found] == ["The ferry of acme in one email."]
        found = stone.search("ferry", where={"source_type": "paper"}).hits
        assert [hit.text for hit in found] == ["The ferry of default in one paper."]
        assert len(stone.workspace("acme").search("ferry", k=1).hits) == 1
        assert load_settings(overrides={"profile": "ghostwriter"}, environment={}).retrieval.k == 10


@pytest.mark.req("R-DOM-28")
def test_a_result_says_what_was_found_and_how_well(stone: Ragstone) -> None:
    with stone:
        item = Item("test", "a", "a.txt", "The ferry sails at noon.", metadata={"colour": "red"})
        stone.ingest_items([item])
        (hit,) = stone.search("ferry").hits
        assert isinstance(hit, Hit)
        assert hit.document_id == stone.documents()[0].id
        assert hit.text == "The ferry sails at noon."
        assert isinstance(hit.score, float)
        assert 0 < hit.score <= 1
        assert hit.metadata["colour"] == "red"


@pytest.mark.req("R-DOM-27")
async def test_a_point_has_id_text_embedding_and_metadata(stone: Ragstone) -> None:
    """As Chroma got it: what goes into a provider is what a `VectorDocument` has."""
    settings = Settings.model_validate({"data_dir": "chroma", "store": {"vectors": "chroma"}})
    async with ragstone.open_engine(settings) as engine:
        item = Item("test", "a", "a.txt", "The ferry sails at noon.", metadata={"colour": "red"})
        await workspace_of(engine).documents.ingest_items([item])
        (document,) = await workspace_of(engine).documents.list()
        (chunk,) = await workspace_of(engine).documents.chunks(document.id)
        mirror = engine._components.stores.vectors
        place = await _partition_of(engine)
        (point,) = await mirror.provider.read(place, [chunk.id])  # type: ignore[attr-defined]
    assert point.chunk_id == chunk.id
    assert (point.payload["text"], point.payload["colour"]) == ("The ferry sails at noon.", "red")
    assert len(point.vector) == 64
    assert np.linalg.norm(point.vector) == pytest.approx(1, abs=1e-3)


async def _partition_of(engine: Engine) -> VectorPartition:
    kb = await engine._components.ledger.of("default").kb("default")
    assert kb is not None
    assert kb.space is not None
    return VectorPartition(await engine._components.access.identity("default"), f"s{kb.space.id}", kb.space.dimension)


@pytest.mark.req("R-STO-33")
def test_old_exports_are_not_there_and_their_work_is_done_by_others(stone: Ragstone) -> None:
    old = {"vectorSearch", "upsertDocuments", "vector_search", "upsert_documents"}
    surfaces = (ragstone, Engine, Ragstone)
    assert not [name for surface in surfaces for name in dir(surface) if name in old]
    with stone:
        # retrieve(): one call embeds the query, asks both arms and fuses.
        assert stone.ingest_items([Item("test", "a", "a", "The ferry sails.")]).added == 1
        (hit,) = stone.search("ferry").hits
        assert {"dense", "lexical"} <= hit.scores.keys()
        # upsertChunks(): the same document again is a new version with its chunks, not a second document.
        assert stone.ingest_items([Item("test", "a", "a", "The boat sails.")]).updated == 1
        assert [one.text for one in stone.search("sails", k=5).hits] == ["The boat sails."]


class Saved(ResidentBm25Index):
    """A BM25 indexer that tells where it wrote."""

    paths: list[str]

    async def save_index(self, tenant: str, kb: KnowledgeBase, path: Path = DEFAULT_PATH) -> None:
        self.paths = [path.name]
        await super().save_index(tenant, kb, path)


@pytest.mark.req("R-ING-28")
async def test_a_build_works_with_the_parts_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data_dir=tmp_path)
    (tmp_path / "corpus.txt").write_text("The ferry sails at noon. The harbour opens at six.")
    components = Components(settings)
    stores = components.stores
    embedder = FakeEmbedder(name="given", dimension=16)
    chunker = build_chunker(ChunkingSettings(strategy="sentence", size=8, overlap=0), WordTokenizer())
    files = CorpusFiles(Settings(data_dir=tmp_path / "elsewhere"))
    bm25 = Saved(stores.ledger, IndexCache(16))

    @asynccontextmanager
    async def opened(*_: object) -> AsyncIterator[IngestPipeline]:
        way = PrepareOptions(lambda kind: chunker, embedder.model.id, 100)
        verifier = Verifier(stores.ledger, stores.vectors, stores.lexical)
        choice = ModelChoice(embedder.model.id, embedder)
        yield IngestPipeline(stores.ledger, Preparer(parsed, way), choice, verifier, settings.limits, components.access)

    monkeypatch.setattr("ragstone.engine.corpus.open_build_pipeline", opened)
    components.file_upkeep = FileUpkeep(stores.ledger, files, bm25)
    result = await Engine(components).workspace("default").collections.build(BuildRequest("corpus.txt"))
    assert [texts for texts, _ in embedder.calls] == [("The ferry sails at noon.", "The harbour opens at six.")]
    assert (result.embedding_model, result.embedding_dimension, result.total_chunks) == ("given", 16, 2)
    assert bm25.paths == ["bm25_index.pkl.next"]
    assert Path(result.metadata_path) == tmp_path / "elsewhere" / "indices" / "chunks.json"
    assert len(load_metadata(Path(result.metadata_path))) == 2
    await components.close()
