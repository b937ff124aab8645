"""A data folder with a corpus in it, an engine over it, and what is live of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragstone import Item, Ragstone
from ragstone.blocking import BlockingWorkspace
from ragstone.core.collections import BuildRequest, draft_prefix
from ragstone.stores.corpus.files import load_metadata
from ragstone.stores.lexical.bm25_file import load_index
from ragstone.testing.fakes import FakeEmbedder

OLD = "The dragon sleeps under the mill. The miller pays in barley.\n\nA lantern burns at the tavern door."
NEW = "The griffin nests above the quarry. The mason pays in slate.\n\nA horn hangs by the guildhall."
BUILD = BuildRequest("data/corpus.txt")
AGAIN = replace(BUILD, overwrite=True)
NAME = "corpus_embeddings"
ONE_VECTOR_LESS = "DELETE FROM vectors WHERE chunk_seq = (SELECT max(chunk_seq) FROM vectors)"


@pytest.fixture(params=["sqlite", "chroma"])
def stone(request: pytest.FixtureRequest, tmp_path: Path, fake_model: FakeEmbedder) -> Iterator[Ragstone]:
    """An engine whose chunks are short, with a corpus in its data folder."""
    with opened(tmp_path, request.param) as stone:
        yield stone


def opened(folder: Path, vectors: str = "sqlite") -> Ragstone:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "corpus.txt").write_text(OLD, encoding="utf-8")
    chunking = {"strategy": "sentence", "size": 8, "overlap": 0}
    return Ragstone(data_dir="data", store={"vectors": vectors}, chunking=chunking)


def texts(stone: Ragstone, kb: str = NAME, **options: Any) -> list[str]:
    """The live chunks of a kb, found by both arms."""
    found = [
        {hit.chunk_id: hit.text for hit in stone.search(" ".join((OLD, NEW)), k=50, kb=kb, arms=arms, **options).hits}
        for arms in ("lexical", "dense")
    ]
    assert found[0] == found[1]
    return sorted(found[0].values())


def files(stone: Ragstone, under: Path = Path("data/indices")) -> tuple[set[str], set[str]]:
    """Chunk ids in the two files."""
    return set(load_index(under / "bm25_index.pkl")[0].pack().ids), set(load_metadata(under / "chunks.json"))


def live_ids(stone: BlockingWorkspace, kb: str = NAME) -> set[str]:
    documents = stone.documents(kb=kb)
    return {one.id for document in documents for one in stone.chunks(document.id)}


def leave_draft(stone: Ragstone, collection: str = NAME) -> str:
    """What a build that was killed leaves in the ledger; its name."""
    name = draft_prefix(collection) + "01234567"

    async def left() -> None:
        async with stone.engine._components.ledger.transaction("default") as tx:
            await tx.open_kb(name, draft=True)

    stone._run(left())
    stone.ingest_items([Item("corpus", "x", "x", "Left by a crash.")], kb=name)
    return name
