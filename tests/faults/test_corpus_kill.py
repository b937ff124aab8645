"""kill -9 at any point of a build: the collection is the old one or the new one, whole, and a rerun clears away.

`RAGSTONE_CRASHES=20 pytest tests/faults/test_corpus_kill.py tests/faults/test_rename_kill.py` is the long run.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.faults import corpus_process

from ragstone import Ragstone
from ragstone.core.collections import BuildRequest
from ragstone.stores.corpus.files import load_metadata
from ragstone.stores.lexical.bm25_file import load_index
from ragstone.testing.fakes import FakeEmbedder

OLD = [f"The dragon number {n} sleeps." for n in range(6)]
NEW = [f"The griffin number {n} nests." for n in range(4)]
NAME = "corpus_embeddings"
FILES = ("bm25_index.pkl", "chunks.json")
BEFORE = {
    "embedding": "ragstone.ingest.embed:WaveEmbedder.embed",
    "storing": "ragstone.ingest.pipeline:store",
    "the index": "ragstone.stores.lexical.bm25:save_index",
    "the index half written": "ragstone.stores.corpus.atomic_file:os.fsync",
    "the metadata half written": "ragstone.stores.corpus.atomic_file:os.fsync:3",
    "the metadata written": "ragstone.stores.corpus.files:save_metadata+",
    "the old one removed": "ragstone.stores.ledger.writes:delete_kb+",
    "the new one renamed": "ragstone.stores.ledger.writes:rename_kb+",
}
AFTER = {
    "the swap committed": "ragstone.stores.corpus.files:FilePair.install",
    "the index in place": "ragstone.stores.corpus.files:put_in_place+",
    "both files in place": "ragstone.stores.corpus.files:put_in_place:2+",
}
ELSEWHERE = ("storing", "the new one renamed", "the swap committed")
CASES = [
    pytest.param(live, point, vectors, id=f"{name}-{vectors}")
    for points, live in ((BEFORE, OLD), (AFTER, NEW))
    for name, point in points.items()
    for vectors in (("sqlite", "chroma") if name in ELSEWHERE else ("sqlite",))
]


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())


def found(stone: Ragstone) -> list[list[str]]:
    """What each arm finds."""
    words = " ".join((*OLD, *NEW))
    return [
        sorted(hit.text for hit in stone.search(words, k=50, kb=NAME, arms=arms).hits) for arms in ("lexical", "dense")
    ]


def in_files() -> list[set[str]]:
    index, metadata = (Path("data/indices") / name for name in FILES)
    return [set(load_index(index)[0].pack().ids), set(load_metadata(metadata))]


def ids(stone: Ragstone) -> set[str]:
    return {one.id for document in stone.documents(kb=NAME) for one in stone.chunks(document.id)}


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A data folder with a collection in it, built once for each kind of vector index."""

    @cache
    def build(vectors: str) -> Path:
        place = tmp_path_factory.mktemp(vectors)
        with contextlib.chdir(place):
            Path("data").mkdir()
            Path("data/corpus.txt").write_text("\n\n".join(OLD))
            with corpus_process.engine(vectors) as stone:
                stone.corpora.build(BuildRequest("corpus.txt"))
        return place / "data"

    return build


def kill_a_build(built: Path, point: str, vectors: str) -> None:
    """Build another collection over the one that there is, which does not get beyond a point."""
    shutil.copytree(built, "data")
    Path("data/corpus.txt").write_text("\n\n".join(NEW))
    corpus_process.kill(corpus_process.build, point, vectors)


@pytest.mark.req("R-REL-24", "R-REL-25")
@pytest.mark.parametrize(("live", "point", "vectors"), CASES)
@pytest.mark.parametrize("_time", corpus_process.TIMES)
def test_a_build_that_is_killed(
    live: list[str], point: str, vectors: str, stock: Callable[[str], Path], _time: int
) -> None:
    kill_a_build(stock(vectors), point, vectors)
    with corpus_process.engine(vectors) as stone:
        assert found(stone) == [live, live]
        stone.corpora.build(BuildRequest("corpus.txt", overwrite=True))
        assert found(stone) == [NEW, NEW]
        assert [kb.name for kb in stone.kbs()] == [NAME]
        assert in_files() == [ids(stone)] * 2
    assert sorted(path.name for path in Path("data/indices").iterdir()) == [f".{NAME}.lock", *FILES]


@pytest.mark.req("R-REL-25")
@pytest.mark.parametrize("point", [AFTER["the swap committed"], AFTER["the index in place"]])
@pytest.mark.parametrize("_time", corpus_process.TIMES)
def test_files_that_were_not_put_in_place_are_by_whoever_comes_next(
    point: str, stock: Callable[[str], Path], _time: int
) -> None:
    kill_a_build(stock("sqlite"), point, "sqlite")
    with corpus_process.engine("sqlite") as stone:
        assert in_files() != [ids(stone)] * 2
        stone.ingest(Path("data/corpus.txt"), kb="other")
        stone.delete(stone.documents(kb="other")[0].id)
        assert in_files() == [ids(stone)] * 2
        assert found(stone) == [NEW, NEW]
