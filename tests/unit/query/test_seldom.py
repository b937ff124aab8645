"""What happens seldom: queries nobody can embed, results too large, time that is up before a stage begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.query.doubles import KB, Clock, Index, Shelf, ask, candidates, make_pipeline

from ragstone.core.errors import SettingsError
from ragstone.core.types import Chunk, Space
from ragstone.query import context as trace
from ragstone.query.explain import explain
from ragstone.query.pipeline import diversify, join_chunks
from ragstone.query.transform import Transformer
from ragstone.query.transform.entities import other_names
from ragstone.query.transform.synonyms import MOST_BYTES, read_dictionary
from ragstone.settings.retrieval import RetrievalSettings
from ragstone.testing.fakes import FakeEmbedder


async def test_a_query_that_the_model_can_make_nothing_of_is_searched_for_by_word() -> None:
    refusing = FakeEmbedder(refuse={"some words"})

    async def embedder(_: Space) -> FakeEmbedder:
        return refusing

    found = candidates("a#0")
    search = make_pipeline(Shelf({"a#0": "text"}), Index(found), Index(found), embedder_for=embedder)
    result = await search.search("default", KB, ask("some words"))
    assert [hit.scores for hit in result.hits] == [{"lexical": 1.0, "lexical_rank": 1}]
    assert result.degraded == ("dense: fake@1 could make nothing of the query",)


@pytest.mark.parametrize("strategy", [None, "decompose"])
async def test_transforms_are_left_out_when_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch, strategy: str | None
) -> None:
    clock = Clock()
    monkeypatch.setattr(trace, "time", clock)
    search = make_pipeline(Shelf({"a#0": "text"}), Index([]), Index([]), transformer=Transformer(["decompose"]))
    begun = search.begin("default", KB, ask("ferries and bridges", strategy=strategy))
    clock.seconds = 1000.0
    results = await search.run(begun)
    assert (results.variants.lexical, results.variants.dense) == (("ferries and bridges",), ("ferries and bridges",))
    assert ("transform", "out of time") in [(stage.stage, stage.skipped) for stage in begun.record.stages]


async def test_a_document_is_read_once_for_all_its_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf({f"a#{n}": word for n, word in enumerate(["zero", "one", "two"])})
    shelf.apart = True
    read: list[str] = []
    document_chunks = shelf.document_chunks

    async def noted(document_id: str) -> object:
        read.append(document_id)
        return await document_chunks(document_id)

    monkeypatch.setattr(shelf, "document_chunks", noted)
    search = make_pipeline(shelf, Index(candidates("a#0", "a#2")), Index([]), retrieval=RetrievalSettings(neighbours=1))
    hits = (await search.search("default", KB, ask())).hits
    assert [hit.context for hit in hits] == ["zero\n\none", "one\n\ntwo"]
    assert read == ["a"]


def test_a_chunk_inside_another_adds_nothing() -> None:
    text = "the quick brown fox"
    whole, inside = Chunk(0, text, 0, len(text)), Chunk(1, "quick", 4, 9)
    assert join_chunks([inside, whole], inside) == text


def test_nothing_is_diverse_among_nothing() -> None:
    assert diversify([], 5, 0.5, {}) == []


async def test_lost_at_the_cut_though_it_was_read() -> None:
    shelf = Shelf({"a#0": "the ferry leaves at nine", "b#0": "the bridge is closed today"})
    search = make_pipeline(shelf, Index(candidates("a#0", "b#0")), Index([]), retrieval=RetrievalSettings(collapse=0.9))
    lost = await explain(shelf, search, "default", KB, ask(k=1), "b")
    assert (lost.lost_at, lost.reason) == ("pack", "rank 2 after fusion; 1 were asked for")


def test_a_dictionary_larger_than_any_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(SettingsError, match="has more than 10 MB"):
        read_dictionary(path)


def test_words_in_brackets_that_do_not_fit_the_letters_before_them_explain_nothing() -> None:
    assert other_names("the SLA", ["An SLA (Total Cost Price) is signed."]).words == ()
    assert other_names("the SLA", ["An SLA (Service Level Agreement) is signed."]).words == ("Service Level Agreement",)
