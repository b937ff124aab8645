"""Documents have versions, and a change of how they are made makes all of them anew."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ragstone import Item, Ragstone
from ragstone.testing.fakes import FakeEmbedder

GUIDE = "# Guide\n\n## Dogs\n\nA dog travels for two crowns.\n\n## Cats\n\nA cat travels in a basket.\n"


def counts(folder: Path) -> tuple[int, int]:
    """Vectors, and chunks without a context, as they are on the disk."""
    (path,) = folder.glob("tenants/*/ledger.db")
    with closing(sqlite3.connect(path)) as database:
        vectors = database.execute("SELECT count(*) FROM vectors").fetchone()[0]
        return vectors, database.execute("SELECT count(*) FROM chunks WHERE context = ''").fetchone()[0]


def test_an_upgrade_may_drop_all_embeddings_and_the_next_run_makes_everything_anew(
    tmp_path: Path, fake_model: FakeEmbedder
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(GUIDE)
    with Ragstone(data_dir="data", chunking={"context": False}) as stone:
        stone.ingest(folder)
    vectors, bare = counts(Path("data"))
    assert vectors == bare > 0
    (path,) = Path("data").glob("tenants/*/ledger.db")
    with closing(sqlite3.connect(path)) as database:  # the upgrade
        database.execute("DELETE FROM vectors")
        database.execute("UPDATE documents SET embedded = 0")
        database.commit()
    with Ragstone(data_dir="data") as stone:
        assert stone.stats().unembedded == 2
        report = stone.ingest(folder)
        assert (report.updated, report.unchanged) == (2, 0)
        chunks = [one.chunk for document in stone.documents() for one in stone.chunks(document.id)]
        assert {one.context for one in chunks if "dog" in one.text} == {"# Guide\n## Dogs\n\n"}
        assert stone.stats().unembedded == 0
        assert len(stone.search("dog", arms="dense", k=10).hits) == len(chunks)
    assert counts(Path("data")) == (len(chunks), 0)


@pytest.mark.req("R-DOM-42")
def test_a_document_has_versions_of_which_one_is_live(fake_model: FakeEmbedder) -> None:
    with Ragstone(data_dir="data") as stone:
        documents, seen, receipts = [], [], []
        for words in ("The ferry sails at six.", "The ferry sails at six.", "The ferry sails at nine."):
            stone.ingest_items([Item("test", "a", "a", words)])
            documents += stone.documents()
            seen.append((stone.text(documents[-1].id), {hit.text for hit in stone.search("ferry", k=10).hits}))
            assert {live.version for live in stone.chunks(documents[-1].id)} == {documents[-1].version}
            receipts.append(stone.receipt(stone.ask("When does the ferry sail?")))
        # What was answered from an earlier version is no longer borne out.
        assert [stone.check_receipt(receipt).holds for receipt in receipts] == [False, False, True]
    assert [document.version for document in documents] == [1, 1, 2]
    assert len({(document.id, document.created_at) for document in documents}) == 1
    assert documents[0].updated_at == documents[1].updated_at
    assert seen == [
        (words, {words}) for words in ("The ferry sails at six.", "The ferry sails at six.", "The ferry sails at nine.")
    ]
