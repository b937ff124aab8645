"""No copies, not all alike, and the text around a hit."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.unit.query.doubles import KB, Index, Shelf, ask, candidates, fake_embedder, make_pipeline

from ragstone.core.search import SearchResult
from ragstone.core.types import Chunk
from ragstone.query import pipeline
from ragstone.query.compress import CompressStage
from ragstone.query.pipeline import LONGEST, _section, join_chunks
from ragstone.settings.retrieval import Compress, RetrievalSettings

FERRY = "the ferry leaves the harbour at nine in the morning"
TEXTS = {"a#0": FERRY, "b#0": FERRY + " today", "c#0": "lanterns are lit along the pier when it gets dark", "d#0": ""}


async def found(retrieval: RetrievalSettings, texts: dict[str, str] = TEXTS, k: int = 2) -> SearchResult:
    search = make_pipeline(Shelf(texts), Index(candidates(*texts, step=0.01)), Index([]), retrieval=retrieval)
    return await search.search("default", KB, ask(k=k, candidates=4))


def order(result: SearchResult) -> list[str]:
    return [hit.chunk_id for hit in result.hits]


async def test_by_default_copies_are_returned_too() -> None:
    assert order(await found(RetrievalSettings())) == ["a#0", "b#0"]


@pytest.mark.parametrize(("share", "kept"), [(0.8, ["a#0", "c#0"]), (1.0, ["a#0", "c#0"])])
async def test_a_copy_of_a_better_passage_is_left_out_and_the_next_one_takes_its_place(
    share: float, kept: list[str]
) -> None:
    result = await found(RetrievalSettings(collapse=share))
    assert order(result) == kept
    assert [(stage.entered, stage.left) for stage in result.trace if stage.stage == "collapse"] == [(4, 3)]


async def test_passages_that_share_less_are_both_kept() -> None:
    texts = {"a#0": FERRY, "b#0": "the ferry leaves the island at six in the evening"}
    assert order(await found(RetrievalSettings(collapse=0.8), texts)) == ["a#0", "b#0"]


async def test_diversity_prefers_what_is_unlike_the_hits_before_it() -> None:
    result = await found(RetrievalSettings(diversity=0.5), {name: TEXTS[name] for name in ("a#0", "b#0", "c#0")})
    assert order(result) == ["a#0", "c#0"]
    assert "diversify" in [stage.stage for stage in result.trace]


async def test_a_little_diversity_does_not_outweigh_relevance() -> None:
    assert order(await found(RetrievalSettings(diversity=0.01))) == ["a#0", "b#0"]


THINNED = [
    (RetrievalSettings(collapse=0.8), "drop_copies", "SOON_COMPARED"),
    (RetrievalSettings(diversity=0.5), "diversify", "SOON_CHOSEN"),
]


@pytest.mark.parametrize(("settings", "work", "limit"), THINNED)
async def test_much_is_compared_beside_the_event_loop_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch, settings: RetrievalSettings, work: str, limit: str
) -> None:
    compare, threads = getattr(pipeline, work), []

    def noted(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return compare(*given)

    monkeypatch.setattr(pipeline, work, noted)
    soon = await found(settings)
    monkeypatch.setattr(pipeline, limit, 0)
    assert order(await found(settings)) == order(soon) != ["a#0", "b#0"]
    assert [thread is threading.current_thread() for thread in threads] == [True, False]


@pytest.mark.req("R-REL-17")
@pytest.mark.parametrize(("settings", "work", "limit"), THINNED)
async def test_a_comparison_is_left_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, settings: RetrievalSettings, work: str, limit: str
) -> None:
    left = threading.Event()
    monkeypatch.setattr(pipeline, work, lambda ranked, *_: left.wait(10) and ranked[:0])
    monkeypatch.setattr(pipeline, limit, 0)
    try:
        result = await found(settings.model_copy(update={"timeout": 0.3}))
    finally:
        left.set()
    stage = {"drop_copies": "collapse"}.get(work, work)
    assert order(result) == ["a#0", "b#0"], "as they were ranked"
    assert result.degraded == (f"{stage}: out of time",)


@pytest.mark.parametrize(
    ("settings", "context"),
    [
        (RetrievalSettings(), ""),
        (RetrievalSettings(neighbours=1), "one\n\ntwo\n\nthree"),
        (RetrievalSettings(parents=True), "zero\n\none\n\ntwo\n\nthree"),
    ],
)
async def test_the_text_around_a_hit_comes_with_it_and_its_place_stays(
    settings: RetrievalSettings, context: str
) -> None:
    words = ["zero", "one", "two", "three"]
    shelf = Shelf({f"a#{n}": word for n, word in enumerate(words)})
    shelf.apart = True
    search = make_pipeline(shelf, Index(candidates("a#2")), Index([]), retrieval=settings)
    (hit,) = (await search.search("default", KB, ask())).hits
    assert (hit.text, hit.end - hit.start, hit.context) == ("two", 3, context)


def test_what_chunks_share_is_said_once() -> None:
    text = "the quick brown fox jumps"
    parts = [Chunk(0, text[:15], 0, 15), Chunk(1, text[10:19], 10, 19), Chunk(2, text[16:], 16, len(text))]
    assert join_chunks(parts[::-1], parts[1]) == text
    assert join_chunks([parts[1]], parts[1]) == "brown fox"


def test_a_long_section_is_cut_around_the_hit() -> None:
    parts = [Chunk(n, f"{n:06}" * 1000, n * 7000, n * 7000 + 6000) for n in range(20)]
    around = join_chunks(parts, parts[10])
    assert len(around) == LONGEST
    assert around.index(parts[10].text) == LONGEST // 4, "most of what is returned follows the hit"


def test_a_section_is_what_stands_under_the_same_heading_and_the_chunk_that_holds_it() -> None:
    heading = Chunk(0, "Fares", 0, 5, section=("Ferry",))
    dogs = [Chunk(n, "x", 10 * n, 10 * n + 1, section=("Ferry", "Dogs"), parent=0) for n in (1, 2)]
    cars = Chunk(3, "x", 30, 31, section=("Ferry", "Cars"), parent=0)
    # Another section of the same name, further down.
    others = Chunk(4, "x", 40, 41, section=("Ferry", "Dogs"), parent=3)
    chunks = [heading, *dogs, cars, others]
    assert _section(chunks, dogs[0]) == {0, 1, 2}
    assert _section(chunks, cars) == {0, 3}
    assert _section(chunks, others) == {3, 4}
    assert _section(chunks, heading) == {0}


@pytest.mark.parametrize(("method", "stages"), [("off", 0), ("words", 1)])
async def test_passages_are_compressed_unless_that_is_off(method: Compress, stages: int) -> None:
    index, stage = Index(candidates("a#0")), CompressStage(method, fake_embedder)
    search = make_pipeline(Shelf({"a#0": FERRY}), index, index, compress=stage)
    result = await search.search("default", KB, ask("ferry"))
    assert [one.stage for one in result.trace].count("compress") == stages
