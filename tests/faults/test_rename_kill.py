"""kill -9 at any point of a renaming: the same command again finishes it, and nothing that was asked is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import corpus_process

from ragstone import Ragstone
from ragstone.core.collections import BuildRequest
from ragstone.testing.fakes import FakeEmbedder

OLD, NEW = "corpus_embeddings", "game"
QUESTION = "Where does the dragon sleep?"
POINTS = {
    "nothing renamed": "ragstone.stores.ledger.writes:rename_kb",
    "the kb half renamed": "ragstone.stores.ledger.writes:rename_kb+",
    "the kb renamed": "ragstone.stores.corpus.upkeep:FileUpkeep.refresh",
    "one file in place": "ragstone.stores.corpus.files:put_in_place+",
    "the files in place": "ragstone.stores.corpus.files:FilePair.remove",
    "all but the record": "ragstone.core.audit:_end_entry",
}


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())


def asked(stone: Ragstone, kb: str) -> tuple[int, int, int, int]:
    """Votes, golden queries, turns and searches that are kept of a kb."""
    activity = stone.activity
    turns = len(stone.conversations.turns("c", kb=kb))
    return (len(activity.votes(kb=kb)), len(activity.golden(kb=kb)), turns, len(activity.searches(kb=kb)))


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
@pytest.mark.parametrize("_time", corpus_process.TIMES)
def test_a_renaming_that_is_killed(point: str, _time: int) -> None:
    Path("data").mkdir()
    Path("data/corpus.txt").write_text("The dragon sleeps under the mill.")
    with corpus_process.engine("sqlite") as stone:
        stone.corpora.build(BuildRequest("corpus.txt"))
        stone.ask(QUESTION, conversation="c", kb=OLD)
        hit = stone.search("dragon", kb=OLD).hits[0]
        stone.feedback("dragon", [hit.chunk_id], kb=OLD)
        stone.activity.add_golden("dragon", [hit.document_id], kb=OLD)
    corpus_process.kill(corpus_process.rename, point)
    with corpus_process.engine("sqlite") as stone:
        names = [kb.name for kb in stone.kbs()]
        assert names in ([OLD], [NEW])
        again = names == [OLD]
        if again:  # and goes on to be asked
            stone.ask(QUESTION, conversation="c", kb=OLD)
            stone.feedback("dragon", [hit.chunk_id], "up", kb=OLD)
        assert stone.rename_kb(OLD, NEW).name == NEW
        assert asked(stone, NEW) == (1, 1, 1 + again, 2 + again)
        assert asked(stone, OLD) == (0, 0, 0, 0)
        assert stone.activity.votes(kb=NEW)[0].vote == ("up" if again else "used")
        health = stone.corpora.health(NEW)
        assert (health.bm25_index, health.metadata) == ("loaded", "loaded")
        assert next(one.outcome for one in stone.audit(action="kb.rename")) == "done"
        assert not Path("data/indices/bm25_index.pkl").exists()
