"""A corpus file as a whole becomes a collection, and a new one takes its place only when it is complete."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.flow import corpus_kit
from tests.flow.corpus_kit import AGAIN, BUILD, NAME, NEW, OLD, ONE_VECTOR_LESS, files, live_ids, texts

from ragstone import Item, Ragstone, RagstoneError
from ragstone.core.collections import ChunkMetadata
from ragstone.core.errors import CollectionExists, InputError, ModelError, RemoteError, StoreError
from ragstone.core.types import KnowledgeBase
from ragstone.stores.corpus.files import FilePair, load_metadata
from ragstone.stores.lexical.bm25_file import load_index, save_index
from ragstone.testing.fakes import FakeEmbedder

stone = corpus_kit.stone


@pytest.mark.req("R-ING-11", "R-ING-23", "R-ING-24", "R-ING-27", "R-TST-22")
def test_a_corpus_becomes_a_collection(stone: Ragstone) -> None:
    result = asdict(stone.corpora.build(BUILD))
    assert result.pop("duration_seconds") > 0
    chunks = [one.chunk for one in stone.chunks(stone.documents(kb=NAME)[0].id)]
    assert result == {
        "total_chunks": 3,
        "bm25_index_path": "data/indices/bm25_index.pkl",
        "vector_db_collection": NAME,
        "metadata_path": "data/indices/chunks.json",
        "embedding_model": "fake",
        "embedding_dimension": 64,
        "statistics": {
            "avg_chunk_size": 7,  # words, and the full stop
            "total_tokens": 21,
            "min_chunk_size": 6,
            "max_chunk_size": 8,
            "documents": 1,
        },
    }
    assert texts(stone) == sorted(one.text for one in chunks)
    assert [hit.text for hit in stone.search("lantern", k=1, kb=NAME).hits] == [chunks[2].text]
    assert [kb.name for kb in stone.kbs()] == [NAME]


@pytest.mark.req("R-REL-25")
def test_every_chunk_is_in_the_ledger_both_arms_and_both_files(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    ids = live_ids(stone)
    assert len(ids) == 3
    assert files(stone) == (ids, ids)
    assert len(texts(stone)) == 3


@pytest.mark.req("R-DOM-29", "R-DOM-30", "R-DOM-31")
def test_metadata_of_a_chunk_is_found_by_its_id(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    written = json.loads(Path("data/indices/chunks.json").read_text())
    book = load_metadata(Path("data/indices/chunks.json"))
    assert written.keys() == book.keys() == live_ids(stone)
    for live in stone.chunks(stone.documents(kb=NAME)[0].id):
        entry = written[live.id]
        assert (entry["chunk_id"], entry["source"], entry["position"]) == (live.id, "corpus.txt", live.chunk.start)
        assert OLD[entry["position"] : entry["end"]] == live.chunk.text
        assert (entry["chunk_index"], entry["document_id"]) == (live.chunk.index, live.document_id)
        assert stone.corpora.chunk(live.id) == book[live.id] == ChunkMetadata.of(live)
    assert stone.corpora.chunk("0" * 32) is None
    assert stone.corpora.chunk(next(iter(book)), "other") is None
    assert stone.workspace("somebody").corpora.chunk(next(iter(book))) is None


@pytest.mark.req("R-ING-25")
def test_a_collection_that_exists_is_not_replaced_unasked(stone: Ragstone, fake_model: FakeEmbedder) -> None:
    stone.corpora.build(BUILD)
    fake_model.calls.clear()
    before = (live_ids(stone), Path("data/indices/chunks.json").read_bytes())
    Path("data/corpus.txt").write_text(NEW)
    with pytest.raises(CollectionExists) as caught:
        stone.corpora.build(BUILD)
    assert caught.value.code == "COLLECTION_EXISTS"
    assert str(caught.value) == "Collection already exists. Use overwrite=true to replace."
    assert fake_model.calls == []  # it was known before the work was done
    assert (live_ids(stone), Path("data/indices/chunks.json").read_bytes()) == before


@pytest.mark.req("R-ING-26", "R-TST-22")
def test_overwrite_replaces_collection_index_and_metadata(stone: Ragstone) -> None:
    stone.corpora.build(BUILD)
    stone.ingest_items([Item("test", "x", "x", "Something of another source in it.")], kb=NAME)
    before = live_ids(stone)
    Path("data/corpus.txt").write_text(NEW)
    result = stone.corpora.build(AGAIN)
    ids = live_ids(stone)
    assert not ids & before
    assert files(stone) == (ids, ids)
    assert texts(stone) == sorted(
        NEW[one.position : one.fields["end"]] for one in load_metadata(Path(result.metadata_path)).values()
    )
    assert len(stone.documents(kb=NAME)) == 1
    assert [kb.name for kb in stone.kbs()] == [NAME]


def test_overwrite_makes_a_collection_that_is_not_there_yet(stone: Ragstone) -> None:
    assert stone.corpora.build(AGAIN).total_chunks == 3


def fail_at(monkeypatch: pytest.MonkeyPatch, place: str, error: BaseException) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(place, fail)


FAULTS = {
    "while it is stored": "ragstone.ingest.pipeline.store",
    "while the index is written": "ragstone.stores.lexical.bm25.save_index",
    "while the metadata is written": "ragstone.stores.corpus.files.save_metadata",
    "while it is validated": "ragstone.stores.corpus.upkeep.live_chunk_ids",
    "while it is swapped in": "ragstone.stores.ledger.writes.present",
}


@pytest.mark.req("R-REL-24")
@pytest.mark.parametrize("place", FAULTS.values(), ids=FAULTS)
def test_a_build_that_fails_leaves_the_old_collection(
    stone: Ragstone, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stone.corpora.build(BUILD)
    ids, there = live_ids(stone), texts(stone)
    Path("data/corpus.txt").write_text(NEW)
    with monkeypatch.context() as patch:
        fail_at(patch, place, StoreError("the disk is on fire"))
        with pytest.raises(RagstoneError, match="the disk is on fire"):
            stone.corpora.build(AGAIN)
    assert (live_ids(stone), texts(stone)) == (ids, there)
    assert files(stone) == (ids, ids)
    assert [kb.name for kb in stone.kbs()] == [NAME]
    assert sorted(path.name for path in Path("data/indices").iterdir()) == [
        f".{NAME}.lock",
        "bm25_index.pkl",
        "chunks.json",
    ]
    stone.corpora.build(AGAIN)
    assert not live_ids(stone) & ids


@pytest.mark.req("R-ING-11", "R-REL-25")
@pytest.mark.parametrize("lost", ["metadata", "vector", "index"])
def test_a_collection_that_lacks_something_is_not_swapped_in(
    stone: Ragstone, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stone.corpora.build(BUILD)
    ids = live_ids(stone)
    Path("data/corpus.txt").write_text(NEW)
    upkeep = stone.engine._components.file_upkeep
    write = upkeep.write_aside

    async def lossy(tenant: str, kb: KnowledgeBase, pair: FilePair) -> list[ChunkMetadata]:
        chunks = await write(tenant, kb, pair)
        if lost == "metadata":
            pair.put_aside(chunks[1:])
        elif lost == "index":
            index, origin = load_index(pair.next_index)
            index.remove([int(index.pack().numbers[0])])
            save_index(index, pair.next_index, origin)
        else:
            ledger: Any = stone.engine._components.ledger
            await ledger.write(tenant, lambda db, _: db.execute(ONE_VECTOR_LESS))
        return chunks

    monkeypatch.setattr(upkeep, "write_aside", lossy)
    with pytest.raises(StoreError, match="of 3 chunks 2 have a vector" if lost == "vector" else "the files do not"):
        stone.corpora.build(AGAIN)
    assert live_ids(stone) == ids


@pytest.mark.req("R-REL-24")
@pytest.mark.parametrize("error", [RemoteError("the model is away"), None])
def test_a_corpus_that_cannot_be_embedded_whole_replaces_nothing(
    stone: Ragstone, fake_model: FakeEmbedder, error: RemoteError | None
) -> None:
    stone.corpora.build(BUILD)
    ids = live_ids(stone)
    Path("data/corpus.txt").write_text(NEW)
    fake_model.errors = [error] * 9 if error else []
    fake_model.refuse = () if error else ("A horn hangs by the guildhall.",)
    with pytest.raises((ModelError, RemoteError), match=r"refused 1 chunks|is away"):
        stone.corpora.build(AGAIN)
    fake_model.errors = []
    assert live_ids(stone) == ids
    assert [kb.name for kb in stone.kbs()] == [NAME]


@pytest.mark.parametrize("content", [b"", b"   \n", b"\x7fELF\x02\x01\x01" + bytes(60)])
def test_what_is_no_corpus_is_refused(stone: Ragstone, content: bytes) -> None:
    Path("data/corpus.txt").write_bytes(content)
    with pytest.raises(InputError, match=r"corpus\.txt"):
        stone.corpora.build(BUILD)
    assert stone.kbs() == []


def test_what_the_request_asks_for_is_done(stone: Ragstone) -> None:
    small = stone.corpora.build(replace(BUILD, chunk_size=14, chunk_overlap=0, collection="small"))
    assert (small.total_chunks, small.vector_db_collection) == (2, "small")
    assert small.metadata_path != stone.corpora.build(BUILD).metadata_path
    assert files(stone, Path(small.metadata_path).parent)[0] == live_ids(stone, "small")
    assert files(stone)[0] == live_ids(stone)


@pytest.mark.parametrize(
    ("size", "overlap", "message"),
    [
        (4, 0, "chunk_size: Input should be greater"),
        (8, 8, r"overlap \(8\) must be smaller"),
        (20, -1, "chunk_overlap"),
    ],
)
def test_chunks_that_cannot_be_are_refused(stone: Ragstone, size: int, overlap: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        stone.corpora.build(replace(BUILD, chunk_size=size, chunk_overlap=overlap))
    assert stone.kbs() == []


def test_a_collection_may_be_of_another_model_than_the_one_before(
    stone: Ragstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    stone.corpora.build(BUILD)
    other = FakeEmbedder(name="other", dimension=32)
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: other)
    result = stone.corpora.build(replace(AGAIN, embedding_model="other"))
    assert (result.embedding_model, result.embedding_dimension) == ("other", 32)
    assert len(texts(stone)) == 3
