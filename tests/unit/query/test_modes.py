"""A mode is a deadline for what is optional; the hard limit is one for everything."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.unit.query.doubles import KB, Clock, Index, Judge, Shelf, ask, candidates, make_pipeline

from ragstone.core.errors import InputError
from ragstone.core.search import SearchQuery
from ragstone.core.types import Mode, Space
from ragstone.query.context import DEADLINES_MS, Recorder, search_request
from ragstone.query.transform import Transformer
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings
from ragstone.settings.tree import Settings
from ragstone.testing.fakes import FakeEmbedder, FakeLLM

NAMES = ["a#0", "b#0", "c#0"]
SHELF = Shelf({name: f"text of {name}" for name in NAMES})
SHORT = RetrievalSettings(timeout=0.05)


def test_there_are_three_modes_and_their_deadlines() -> None:
    assert DEADLINES_MS == {"fast": 200, "balanced": 500, "thorough": 2000}
    assert set(DEADLINES_MS) == set(get_args(Mode))


@pytest.mark.req("R-MOD-07")
def test_another_mode_is_refused() -> None:
    with pytest.raises(InputError, match="mode is 'deep'; it must be one of: fast, balanced, thorough"):
        search_request(Settings(), SearchQuery("words", mode="deep"))  # type: ignore[arg-type]


@pytest.mark.req("R-MOD-08")
def test_the_hard_limit_is_two_seconds_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.query.context.time", Clock())
    assert RetrievalSettings().timeout == 2.0
    assert Recorder("fast").search_seconds == pytest.approx(1.8)
    assert Recorder("thorough", 0.5).left_ms == 500


@pytest.mark.req("R-MOD-08", "R-REL-17")
@pytest.mark.parametrize(
    ("dense_hangs", "lexical_hangs", "hits", "degraded"),
    [
        (True, False, ["b#0"], ("dense: out of time",)),
        (False, True, ["a#0"], ("lexical: out of time",)),
        (True, True, [], ("dense: out of time", "lexical: out of time")),
    ],
)
async def test_an_arm_that_hangs_is_given_up_and_the_other_one_answers(
    dense_hangs: bool, lexical_hangs: bool, hits: list[str], degraded: tuple[str, ...]
) -> None:
    dense = Index(candidates("a#0"), hangs=dense_hangs)
    lexical = Index(candidates("b#0"), hangs=lexical_hangs)
    result = await make_pipeline(SHELF, dense, lexical, retrieval=SHORT).search("default", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == hits
    assert tuple(sorted(result.degraded)) == degraded


async def test_passages_that_cannot_be_read_in_time_are_named() -> None:
    class Stuck(Shelf):
        async def chunks(self, *arguments: object) -> dict[str, object]:  # type: ignore[override]
            await Index([], hangs=True).search("", KB, "", 1)
            return {}

    search = make_pipeline(
        Stuck({"a#0": "text"}), Index(candidates("a#0")), Index([]), retrieval=RetrievalSettings(timeout=0.05)
    )
    result = await search.search("default", KB, ask())
    assert (result.hits, result.degraded) == ((), ("read_back: out of time",))


async def test_a_model_behind_an_address_is_not_waited_for_as_if_it_were_loading() -> None:
    class Gone(FakeEmbedder):
        async def embed(self, *arguments: object) -> None:  # type: ignore[override]
            await Index([], hangs=True).search("", KB, "", 1)

    gone = Gone()
    object.__setattr__(gone.model, "local", False)

    async def embedder(space: Space) -> FakeEmbedder:
        return gone

    search = make_pipeline(
        SHELF, Index(candidates("a#0")), Index(candidates("b#0")), embedder_for=embedder, retrieval=SHORT
    )
    result = await search.search("default", KB, ask())
    assert ([hit.chunk_id for hit in result.hits], result.degraded) == (["b#0"], ("dense: out of time",))


@pytest.mark.req("R-MOD-04", "R-MOD-05", "R-RRK-06")
@pytest.mark.parametrize(("mode", "asked"), [("fast", 0), ("balanced", 0), ("thorough", 1)])
async def test_an_llm_reranks_in_thorough_mode_only(mode: Mode, asked: int) -> None:
    judge = Judge({f"text of {name}": 1 - place / 10 for place, name in enumerate(reversed(NAMES))})
    search = make_pipeline(
        SHELF, Index(candidates(*NAMES)), Index([]), reranker=judge, reranking=RerankingSettings(kind="llm")
    )
    result = await search.search("default", KB, ask(mode=mode))
    assert len(judge.asked) == asked
    assert [hit.chunk_id for hit in result.hits] == (NAMES[::-1] if asked else NAMES)
    skipped = [stage.skipped for stage in result.trace if stage.stage == "rerank" and stage.skipped]
    assert skipped == ([] if asked else ["an LLM reranks in thorough mode only"])
    assert result.degraded == ()


@pytest.mark.req("R-MOD-04")
@pytest.mark.parametrize(("mode", "asked"), [("fast", 0), ("balanced", 0), ("thorough", 1)])
async def test_an_llm_rewrites_in_thorough_mode_only(mode: Mode, asked: int) -> None:
    llm = FakeLLM(["better words"])
    search = make_pipeline(SHELF, Index(candidates(*NAMES)), Index([]), transformer=Transformer(["rewrite"], llm=llm))
    result = await search.search("default", KB, ask("bad words", mode=mode))
    assert len(llm.requests) == asked
    assert result.rewritten_query == ("better words" if asked else "bad words")
    skipped = [stage.skipped for stage in result.trace if stage.stage == "transform" and stage.skipped]
    assert skipped == ([] if asked else ["rewrite: an LLM is asked in thorough mode only"])


async def test_a_request_that_names_the_strategy_gets_it_in_any_mode() -> None:
    llm = FakeLLM(["better words"])
    search = make_pipeline(SHELF, Index([]), Index([]), transformer=Transformer((), llm=llm))
    result = await search.search("default", KB, ask("bad words", mode="fast", strategy="rewrite"))
    assert result.rewritten_query == "better words"


def test_a_strategy_is_one_of_the_transforms() -> None:
    assert search_request(Settings(), SearchQuery("words", strategy="hyde")).strategy == "hyde"
    with pytest.raises(InputError, match="strategy is 'magic'; it must be one of: normalize"):
        search_request(Settings(), SearchQuery("words", strategy="magic"))
