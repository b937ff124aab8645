"""Documents that were used in every way and then erased: no store, file, log or search has a word of them.

`RAGSTONE_CANARIES=1000 pytest tests/faults/test_deletion.py` is the long run.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.long_runs import take_rounds

from ragstone import Ragstone
from ragstone.core.errors import NotFoundError
from ragstone.testing.fakes import FakeEmbedder

CANARIES = take_rounds("RAGSTONE_CANARIES", 5)
AT_ONCE = 50 if CANARIES > 50 else 3
PREFIX = "xylocaneb"
KEPT = 20


def word_of(number: int) -> str:
    return f"{PREFIX}{number:05}q"


def upload(stone: Ragstone, word: str) -> str:
    """Upload a document about a word and return its id."""
    content = f"# About {word}\n\nThe {word} was painted in 1956.\n\nA {word} stands at the harbour.\n"
    return stone.upload(content.encode(), f"{word}.md", metadata={"about": word}).document_id


def use(stone: Ragstone, word: str) -> None:
    """Search for a word, ask about it and rate what was found, so that logs, caches and conversations know it."""
    hits = stone.search(word, k=3).hits
    assert word in hits[0].text
    stone.feedback(word, [hits[0].chunk_id])
    stone.ask(f"When was the {word} painted?", conversation="harbour")


def unpacked_rows(folder: Path) -> Iterator[bytes]:
    """Yield the texts and terms that the ledger keeps compressed."""
    for place in folder.rglob("ledger.db"):
        with closing(sqlite3.connect(place)) as database:
            rows = database.execute("SELECT text FROM versions UNION ALL SELECT terms FROM terms").fetchall()
        yield from (zlib.decompress(row) for (row,) in rows)


def holders_of(folder: Path, word: str) -> list[str]:
    """Return the files that hold a word, in their names, their bytes or their compressed rows."""
    wanted = word.encode()
    places = [place for place in folder.rglob("*") if place.is_file()]
    named = [place.name for place in places if word in place.name or wanted in place.read_bytes()]
    return named + ["a compressed row" for row in unpacked_rows(folder) if wanted in row]


@pytest.mark.req("R-SEC-11")
@pytest.mark.timeout(3600)
def test_no_deleted_canary_is_found_anywhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    caplog.set_level(logging.DEBUG, "ragstone")
    with Ragstone(data_dir=tmp_path / "data") as stone:
        kept = [upload(stone, f"harbour{number}") for number in range(KEPT)]
        for start in range(0, CANARIES, AT_ONCE):
            words = [word_of(number) for number in range(start, min(start + AT_ONCE, CANARIES))]
            documents = [upload(stone, word) for word in words]
            stone.work()
            for word in words:
                use(stone, word)
            assert holders_of(tmp_path / "data", PREFIX)
            for document in documents:
                (receipt,) = stone.erase("document", document)
                assert receipt.complete
                assert receipt.removed["ledger"]["chunks"] > 0
                with pytest.raises(NotFoundError):
                    stone.text(document)
            assert holders_of(tmp_path / "data", PREFIX) == []
        assert stone.stats().documents == len(kept)
    # A search for a word that is gone would itself be logged.
    with Ragstone(data_dir=tmp_path / "data", activity={"searches": False}) as stone:
        for number in range(CANARIES):
            found = [stone.search(word_of(number), k=5, arms=arms).hits for arms in ("lexical", "dense")]
            assert PREFIX not in str(found)
    assert holders_of(tmp_path / "data", PREFIX) == []
    assert PREFIX not in caplog.text
    record_property("injected", CANARIES)
    record_property("noted", "looked for by word and by vector, in logs, in every file and row")
