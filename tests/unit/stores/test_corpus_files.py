"""Chunk metadata as JSON, and two files that are put in place together."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ragstone.core.collections import ChunkMetadata, draft_name, draft_prefix, is_draft
from ragstone.core.errors import NotFoundError, StoreBusy, StoreCorrupt, StoreError
from ragstone.core.ids import check_name
from ragstone.settings.tree import Settings
from ragstone.stores.corpus.files import CorpusFiles, FilePair, load_metadata, save_metadata
from ragstone.stores.lexical.bm25_file import Origin, build_index, save_index

CHUNKS = [
    ChunkMetadata("c1", "corpus.txt", 0, {"page": None, "tags": ["ü", "\u2028"]}),
    ChunkMetadata("c2", "corpus.txt", 487, {"chunk_index": 1}),
]


@pytest.fixture
def pair(tmp_path: Path) -> FilePair:
    return CorpusFiles(Settings(data_dir=tmp_path)).of("default", "0" * 32, "corpus_embeddings")


def write(pair: FilePair, kb_id: int, *, aside: bool, tenant_id: str = "t") -> None:
    index, metadata = (pair.next_index, pair.next_metadata) if aside else (pair.index, pair.metadata)
    save_index(build_index([(1, f"of-{kb_id}", "word")]), index, Origin(tenant_id, kb_id, 1))
    save_metadata([ChunkMetadata(f"of-{kb_id}", "corpus.txt", 0)], metadata)


def names(pair: FilePair) -> list[str]:
    return sorted(path.name for path in pair.index.parent.iterdir())


@pytest.mark.req("R-DOM-29", "R-DOM-30", "R-DOM-31")
def test_metadata_is_read_back_by_chunk_id(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "chunks.json"
    save_metadata(CHUNKS, path)
    book = load_metadata(path)
    assert book == {"c1": CHUNKS[0], "c2": CHUNKS[1]}
    assert book.get("c3") is None
    assert json.loads(path.read_text())["c2"] == {
        "chunk_id": "c2",
        "source": "corpus.txt",
        "position": 487,
        "chunk_index": 1,
    }
    assert path.stat().st_mode & 0o777 == 0o600
    save_metadata([], path)
    assert load_metadata(path) == {}


@pytest.mark.req("R-DOM-31")
def test_the_paths_can_be_set(tmp_path: Path) -> None:
    usual = CorpusFiles(Settings(data_dir=tmp_path)).of("default", "0" * 32, "corpus_embeddings")
    assert (usual.index, usual.metadata) == (
        tmp_path / "indices" / "bm25_index.pkl",
        tmp_path / "indices" / "chunks.json",
    )
    paths = {"bm25_index_path": "/elsewhere/i", "chunk_metadata_path": "own/c.json"}
    chosen = CorpusFiles(Settings.model_validate({"data_dir": tmp_path, "ingestion": paths}))
    own = chosen.of("default", "0" * 32, "corpus_embeddings")
    assert (own.index, own.metadata) == (Path("/elsewhere/i"), tmp_path / "own" / "c.json")
    other = chosen.of("acme", "1" * 32, "corpus_embeddings")
    assert other.metadata == tmp_path / "own" / ("1" * 32) / "corpus_embeddings" / "c.json"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"a": 1}',
        b'{"a": {"chunk_id": "a", "source": "s"}}',
        b'{"a": {"chunk_id": "b", "source": "s", "position": 1}}',
        b'{"a": {"chunk_id": "a", "source": "s", "position": true}}',
        b"\xff",
        b'{"a":' * 100_000,
    ],
)
def test_what_is_no_metadata_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "chunks.json"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="is no chunk metadata"):
        load_metadata(path)


def test_metadata_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no chunk metadata"):
        load_metadata(tmp_path / "chunks.json")


def test_a_full_disk_leaves_the_old_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chunks.json"
    save_metadata(CHUNKS, path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            save_metadata(CHUNKS[:1], path)
    assert len(load_metadata(path)) == 2
    assert [one.name for one in tmp_path.iterdir()] == ["chunks.json"]


@pytest.mark.parametrize("done", [0, 1, 2])
def test_what_waits_for_the_live_kb_is_put_in_place(pair: FilePair, done: int) -> None:
    write(pair, 1, aside=False)
    write(pair, 2, aside=True)
    waiting = [(pair.next_index, pair.index), (pair.next_metadata, pair.metadata)]
    for aside, path in waiting[:done]:
        aside.replace(path)  # and then the process died
    pair.settle("t", 2)
    assert pair.ids() == ({"of-2"}, {"of-2"})
    assert names(pair) == ["bm25_index.pkl", "chunks.json"]


@pytest.mark.parametrize(("tenant_id", "kb_id"), [("t", 1), ("t", None), ("other", 2)])
def test_what_waits_for_another_kb_is_removed(pair: FilePair, tenant_id: str, kb_id: int | None) -> None:
    write(pair, 1, aside=False)
    write(pair, 2, aside=True)
    (pair.index.parent / "chunks.json.nextx1y2").write_text("half")
    pair.settle(tenant_id, kb_id)
    assert pair.ids() == ({"of-1"}, {"of-1"})
    assert names(pair) == ["bm25_index.pkl", "chunks.json"]


def test_an_index_that_waits_and_is_damaged_is_removed(pair: FilePair) -> None:
    write(pair, 1, aside=False)
    write(pair, 2, aside=True)
    pair.next_index.write_bytes(b"damaged")
    pair.settle("t", 1)
    assert pair.ids() == ({"of-1"}, {"of-1"})
    assert names(pair) == ["bm25_index.pkl", "chunks.json"]


def test_one_at_a_time(pair: FilePair) -> None:
    with pair.lock(), pytest.raises(StoreBusy, match="'corpus_embeddings' is being built already"), pair.lock():
        pytest.fail("two at a time")
    with pair.lock():
        pass


async def test_only_a_tenants_own_files_go_with_it(tmp_path: Path) -> None:
    files = CorpusFiles(Settings(data_dir=tmp_path))
    ids = ["a" * 32, "b" * 32]
    usual = files.of("default", ids[0], "corpus_embeddings")
    other = files.of("acme", ids[1], "game")
    write(usual, 1, aside=False, tenant_id=ids[0])
    write(other, 1, aside=False, tenant_id=ids[1])
    assert files.all_of("default", ids[0]) == [usual]
    assert files.all_of("acme", ids[1]) == [other]
    await files.forget("acme", ids[1])
    assert (usual.exist, other.exist) == (True, False)
    await files.forget("renamed since", ids[0])
    assert not usual.exist


@pytest.mark.parametrize("damaged", ["index", "next_index"])
async def test_files_whose_index_cannot_be_read_go_with_the_tenant_of_their_path_alone(
    tmp_path: Path, damaged: str
) -> None:
    files = CorpusFiles(Settings(data_dir=tmp_path))
    usual = files.of("default", "a" * 32, "corpus_embeddings")
    for aside in (False, True):
        write(usual, 1, aside=aside, tenant_id="a" * 32)
    getattr(usual, damaged).write_bytes(b"of another version")
    before = names(usual)
    await files.forget("acme", "b" * 32)
    assert names(usual) == before
    await files.forget("default", "a" * 32)
    assert names(usual) == []


@pytest.mark.parametrize("collection", ["corpus_embeddings", "a", "x" * 63])
def test_a_draft_has_a_name_of_its_own(collection: str) -> None:
    drafts = {draft_name(collection) for _ in range(20)}
    assert len(drafts) == 20
    for draft in drafts:
        assert draft.startswith(draft_prefix(collection))
        assert is_draft(check_name(draft, "kb"))
    assert draft_prefix("x" * 63) != draft_prefix("x" * 62)
    assert not is_draft(collection)
