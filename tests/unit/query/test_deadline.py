"""Who answers for the first time has longer, who hangs is given up, and who is busy is left out and named."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.query.doubles import KB, Clock, Index, Judge, Shelf, ask, candidates, make_pipeline

from ragstone.core.errors import StoreBusy
from ragstone.core.model_types import Embeddings
from ragstone.core.search import Stage
from ragstone.core.types import Candidate, KnowledgeBase, Role, Space
from ragstone.query import arms, pipeline, rerank
from ragstone.query import context as trace
from ragstone.query.context import COLD_TIMES, FirstReads, Recorder, WarmNames, degrade_on_timeout
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings
from ragstone.testing.fakes import FakeEmbedder

BUSY = StoreBusy("5 reads of acme.db have not come back")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (arms, rerank, trace):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Every limit that anything is given from now on."""
    given: list[float | None] = []
    timeout = asyncio.timeout

    def noted(seconds: float | None) -> asyncio.Timeout:
        given.append(seconds)
        return timeout(seconds)

    monkeypatch.setattr(asyncio, "timeout", noted)
    return given


class Loading(Index):
    """An index whose searches take a while."""

    clock: Clock
    seconds: float

    async def search(self, tenant: str, kb: KnowledgeBase, *rest: Any) -> list[Candidate]:
        found = await super().search(tenant, kb, *rest)
        self.clock.seconds += self.seconds
        return found


def loading(clock: Clock, seconds: float) -> Loading:
    index = Loading(candidates("a#0", "b#0"))
    index.clock, index.seconds = clock, seconds
    return index


async def test_the_first_search_of_an_index_has_five_times_as_long(clock: Clock, limits: list[float | None]) -> None:
    search = make_pipeline(
        Shelf({"a#0": "text"}), Index([]), Index(candidates("a#0")), retrieval=RetrievalSettings(timeout=3.0)
    )
    assert COLD_TIMES == 5
    await search.search("acme", KB, ask(arms="lexical"))
    assert limits[0] == 15.0
    limits.clear()
    await search.search("acme", KB, ask(arms="lexical"))
    assert limits[0] == pytest.approx(2.7)
    limits.clear()
    await search.search("globex", KB, ask(arms="lexical"))
    assert limits[0] == 15.0


async def test_an_index_that_was_never_there_in_time_stays_cold(limits: list[float | None]) -> None:
    hanging = Index(candidates("a#0"), hangs=True)
    search = make_pipeline(Shelf({"a#0": "text"}), Index([]), hanging, retrieval=RetrievalSettings(timeout=0.01))
    for _ in range(2):
        limits.clear()
        result = await search.search("acme", KB, ask(arms="lexical"))
        assert (limits[0], result.degraded) == (0.05, ("lexical: out of time",))


async def test_what_the_first_search_takes_is_not_counted(clock: Clock) -> None:
    texts = {"a#0": "first text", "b#0": "second text"}
    judge = Judge({"first text": 0.1, "second text": 0.9})
    search = make_pipeline(
        Shelf(texts), Index([]), loading(clock, 8.0), reranker=judge, reranking=RerankingSettings(kind="cross_encoder")
    )
    cold = await search.search("acme", KB, ask(arms="lexical"))
    assert [hit.chunk_id for hit in cold.hits] == ["b#0", "a#0"]
    warm = await search.search("acme", KB, ask(arms="lexical"))
    assert [hit.chunk_id for hit in warm.hits] == ["a#0", "b#0"]  # 8 s are over any deadline: nothing is reranked


async def test_loading_is_excused_to_the_millisecond_and_only_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index takes 8 s, the model of the query 4 s and the reranker 2 s, each in every search."""

    class Slow(FakeEmbedder):
        async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
            clock.seconds += 4.0
            return await super().embed(texts, role)

    model = Slow()

    async def embedder_for(space: Space) -> Slow:
        return model

    made: list[Recorder] = []
    monkeypatch.setattr(pipeline, "Recorder", lambda mode, _: made.append(Recorder(mode, 60.0)) or made[-1])
    search = make_pipeline(
        Shelf({"a#0": "text", "b#0": "text"}),
        loading(clock, 0.0),
        loading(clock, 8.0),
        embedder_for=embedder_for,
        reranker=Judge({"text": 0.5}, clock, 2.0),
        reranking=RerankingSettings(kind="cross_encoder"),
    )
    await search.search("acme", KB, ask(mode="thorough"))
    assert made[0].left_ms == pytest.approx(2000)
    await search.search("acme", KB, ask(mode="thorough"))
    assert made[1].left_ms == pytest.approx(2000 - 12_000)


def test_what_two_arms_load_at_the_same_time_is_excused_once(clock: Clock) -> None:
    record = Recorder("balanced")
    clock.seconds = 4.0
    record.excuse(3000)
    record.excuse(4000)
    assert record.left_ms == 500
    clock.seconds = 6.0
    record.excuse(1000)
    assert record.left_ms == 500 - 1000


def test_a_stage_is_timed_in_milliseconds(clock: Clock) -> None:
    record = Recorder("fast")
    with record.stage("fuse", 3) as span:
        clock.seconds += 0.25
        span.left = 2
    assert record.stages == [Stage("fuse", 250.0, 3, 2, "")]


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST_WARM", 2)
    warm = WarmNames()
    for name in "abc":
        warm.add(name)
    assert [name in warm for name in "abc"] == [False, False, True]


@pytest.mark.parametrize(
    ("dense", "lexical", "hits", "degraded"),
    [
        (None, BUSY, ["a#0"], (f"lexical: {BUSY}",)),
        (BUSY, None, ["a#0"], (f"dense: {BUSY}",)),
        (BUSY, BUSY, [], (f"dense: {BUSY}", f"lexical: {BUSY}")),
    ],
)
async def test_an_arm_whose_store_is_busy_is_left_out(
    dense: StoreBusy | None, lexical: StoreBusy | None, hits: list[str], degraded: tuple[str, ...]
) -> None:
    found = candidates("a#0")
    search = make_pipeline(Shelf({"a#0": "text"}), Index(found, error=dense), Index(found, error=lexical))
    result = await search.search("acme", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == hits
    assert tuple(sorted(result.degraded)) == degraded


class Refusing(Shelf):
    """A ledger of which some reads are refused."""

    refused: tuple[str, ...] = ()

    def __getattribute__(self, name: str) -> Any:
        if name in type(self).refused:
            return _refuse
        return super().__getattribute__(name)


async def _refuse(*_: object) -> None:
    raise BUSY


@pytest.mark.parametrize(
    ("method", "settings", "stage", "hits"),
    [
        ("chunks", {}, "read_back", []),
        ("known_vectors", {"diversity": 0.5}, "diversify", ["a#0", "b#0"]),
        ("document_chunks", {"neighbours": 1}, "expand", ["a#0", "b#0"]),
    ],
)
async def test_a_read_that_is_refused_costs_its_stage_only(
    monkeypatch: pytest.MonkeyPatch, method: str, settings: dict[str, Any], stage: str, hits: list[str]
) -> None:
    monkeypatch.setattr(Refusing, "refused", (method,))
    dense = Index(candidates("a#0", "b#0"))
    search = make_pipeline(
        Refusing({"a#0": "one", "b#0": "two"}), dense, Index([]), retrieval=RetrievalSettings(**settings)
    )
    result = await search.search("acme", KB, ask(candidates=2, k=2))
    assert [hit.chunk_id for hit in result.hits] == hits
    assert result.degraded == (f"{stage}: {BUSY}",)
    assert len(dense.asked) == 1  # it is not fetched further for what cannot be read
    assert [one.stage for one in result.trace].count(stage) == 1


@pytest.mark.parametrize(
    ("method", "settings", "stage"),
    [("known_vectors", {"diversity": 0.5}, "diversify"), ("document_chunks", {"parents": True}, "expand")],
)
async def test_an_optional_read_that_hangs_is_given_up(
    monkeypatch: pytest.MonkeyPatch, method: str, settings: dict[str, Any], stage: str
) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Shelf, method, hang)
    search = make_pipeline(
        Shelf({"a#0": "one"}),
        Index(candidates("a#0")),
        Index([]),
        retrieval=RetrievalSettings(timeout=0.05, **settings),
    )
    result = await search.search("acme", KB, ask())
    assert ([hit.chunk_id for hit in result.hits], result.degraded) == (["a#0"], (f"{stage}: out of time",))


async def test_limited_lets_other_errors_through() -> None:
    with pytest.raises(ValueError, match="mine"):
        async with degrade_on_timeout(Recorder("fast"), "stage", 1.0):
            raise ValueError("mine")


async def test_what_is_read_before_a_search_is_given_up_too(limits: list[float | None]) -> None:
    reads = FirstReads(0.01)
    with pytest.raises(StoreBusy, match=r"the kb of tenant 'acme' could not be read within 0.05 s"):
        async with reads.within("acme", "kb"):
            await asyncio.Event().wait()
    async with reads.within("acme", "kb"):
        pass
    async with reads.within("acme", "kb"):
        pass
    async with reads.within("acme", "settings"):
        pass
    assert limits == [0.05, 0.05, 0.01, 0.05]


async def test_a_limit_of_somebody_else_is_theirs() -> None:
    with pytest.raises(TimeoutError):
        async with FirstReads(1.0).within("acme", "kb"):
            raise TimeoutError
