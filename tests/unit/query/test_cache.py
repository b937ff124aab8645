from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ragstone.core.errors import StoreBusy
from ragstone.core.filters import parse_filter
from ragstone.core.search import SearchResult, Stage
from ragstone.core.types import Hit, KnowledgeBase, Space
from ragstone.query import cache as cache_module
from ragstone.query.cache import SearchCache
from ragstone.query.context import SearchRequest
from ragstone.settings.retrieval import RetrievalSettings

SPACE = Space(1, "model", 8, 1, "live")
KB = KnowledgeBase(1, "default", SPACE)
PLAIN = RetrievalSettings()
REQUEST = SearchRequest("ferry", 10, "balanced", "hybrid", "rrf", 100)


def found(text: str = "It leaves at nine.", **changes: Any) -> SearchResult:
    hit = Hit("c", "d", "Ferry", "uri", "", None, text, 0.5, {}, {}, 0, len(text))
    result = SearchResult("ferry", "ferry", "balanced", (hit,), (Stage("fuse", 3.0, 1, 1),), (), 9.0)
    return replace(result, **changes)


class Kb:
    """A ledger's number, a clock, and searches that are counted."""

    def __init__(self) -> None:
        self.numbers = {"acme": 7, "globex": 7}
        self.ids = {"acme": "id 1", "globex": "id 2"}
        self.seconds = 0.0
        self.searches = 0
        self.result = found()

    def of(self, tenant: str) -> TenantKb:
        return TenantKb(self, tenant)

    async def identity(self, tenant: str) -> str:
        return self.ids[tenant]

    async def search(self) -> SearchResult:
        self.searches += 1
        return self.result


@dataclass
class TenantKb:
    """The number of one tenant."""

    kb: Kb
    tenant: str

    async def sequence(self) -> int:
        return self.kb.numbers[self.tenant]


@pytest.fixture
def kb() -> Kb:
    return Kb()


@pytest.fixture
def cache(kb: Kb) -> SearchCache:
    return SearchCache(kb, kb.identity, memory_mb=1, clock=lambda: kb.seconds)


async def look(cache: SearchCache, kb: Kb, **changes: Any) -> SearchResult:
    given = {"tenant": "acme", "place": KB, "settings": PLAIN, "request": REQUEST} | changes
    return await cache.search(given["tenant"], given["place"], given["settings"], given["request"], kb.search)


@pytest.mark.req("R-MOD-13", "R-MOD-14")
async def test_the_same_search_is_answered_from_memory_for_a_minute(cache: SearchCache, kb: Kb) -> None:
    first = await look(cache, kb)
    kb.seconds = 59.9
    again = await look(cache, kb)
    assert (again.hits, again.query, again.mode) == (first.hits, first.query, first.mode)
    assert [(one.stage, one.left) for one in again.trace] == [("cache", 1)]
    assert kb.searches == 1
    kb.seconds = 60.0
    assert (await look(cache, kb)).trace == first.trace
    assert kb.searches == 2


@pytest.mark.req("R-MOD-16")
@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": "globex"},
        {"place": replace(KB, id=2)},
        {"place": replace(KB, space=None)},
        {"place": replace(KB, space=replace(SPACE, id=2))},
        {"place": replace(KB, space=replace(SPACE, generation=2))},
        {"settings": RetrievalSettings(dense_weight=0.5)},
        {"settings": RetrievalSettings(min_similarity=0.1)},
        {"request": replace(REQUEST, query="Ferry")},
        {"request": replace(REQUEST, query="ferry ")},
        {"request": replace(REQUEST, k=9)},
        {"request": replace(REQUEST, mode="fast")},
        {"request": replace(REQUEST, arms="dense")},
        {"request": replace(REQUEST, fusion="zscore")},
        {"request": replace(REQUEST, min_score=0.1)},
        {"request": replace(REQUEST, where=parse_filter({"year": 2026}))},
    ],
    ids=repr,
)
async def test_whatever_differs_is_another_search(cache: SearchCache, kb: Kb, changes: dict[str, Any]) -> None:
    await look(cache, kb)
    await look(cache, kb, **changes)
    assert kb.searches == 2


async def test_filters_that_python_takes_for_equal_are_told_apart(cache: SearchCache, kb: Kb) -> None:
    for value in (1, True, 1.5, "1"):
        await look(cache, kb, request=replace(REQUEST, where=parse_filter({"flag": value})))
    assert kb.searches == 4


@pytest.mark.req("R-MOD-15")
async def test_a_commit_makes_all_of_the_tenants_results_go(cache: SearchCache, kb: Kb) -> None:
    await look(cache, kb)
    await look(cache, kb, tenant="globex")
    kb.numbers["acme"] += 1
    kb.result = found("It leaves at ten.")
    assert (await look(cache, kb)).hits[0].text == "It leaves at ten."
    assert (await look(cache, kb, tenant="globex")).hits[0].text == "It leaves at nine."
    assert (len(cache), kb.searches) == (2, 3)


async def test_what_was_found_while_the_kb_changed_is_of_the_past(cache: SearchCache, kb: Kb) -> None:
    async def search() -> SearchResult:
        kb.numbers["acme"] += 1
        return found()

    await cache.search("acme", KB, PLAIN, REQUEST, search)
    await look(cache, kb)
    assert kb.searches == 1


@pytest.mark.req("R-MOD-16")
async def test_who_has_a_name_now_gets_nothing_of_who_had_it_before(cache: SearchCache, kb: Kb) -> None:
    await look(cache, kb)
    kb.ids["acme"] = "id 3"
    kb.result = found("Another one's ferry.")
    assert (await look(cache, kb)).hits[0].text == "Another one's ferry."
    assert (len(cache), kb.searches) == (1, 2)


async def test_what_one_caller_changes_is_not_given_to_the_next(cache: SearchCache, kb: Kb) -> None:
    (hit,) = found().hits
    kb.result = found(hits=(replace(hit, metadata={"tags": ["boat"]}, scores={"dense": 0.5}),))
    for _ in range(3):
        (got,) = (await look(cache, kb)).hits
        assert (got.metadata, got.scores) == ({"tags": ["boat"]}, {"dense": 0.5})
        facts: Any = got.metadata
        facts["tags"].append("poison")
        facts["access"] = "poison"
        scores: Any = got.scores
        scores["dense"] = 9.0
        kb.result = found()
    assert kb.searches == 1


async def test_metadata_takes_room_too(cache: SearchCache, kb: Kb) -> None:
    (hit,) = found().hits
    kb.result = found(hits=(replace(hit, metadata={"note": "y" * 400_000}),))
    for number in range(5):
        await look(cache, kb, request=replace(REQUEST, query=f"q{number}"))
    assert len(cache) == 2


@pytest.mark.parametrize(
    "less", [{"degraded": ("dense: down",)}, {"trace": (Stage("rerank", 0.0, 1, 1, "needs about 900 ms"),)}]
)
async def test_less_than_a_whole_result_is_not_kept(cache: SearchCache, kb: Kb, less: dict[str, Any]) -> None:
    kb.result = found(**less)
    await look(cache, kb)
    await look(cache, kb)
    assert (len(cache), kb.searches) == (0, 2)


async def test_memory_is_bounded(cache: SearchCache, kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    kb.result = found("x" * 100_000)
    for number in range(5):
        await look(cache, kb, request=replace(REQUEST, query=f"q{number}"))
    assert len(cache) == 2
    kb.result = found("x" * 300_000)
    await look(cache, kb, request=replace(REQUEST, query="one that is too large"))
    assert len(cache) == 2
    await look(cache, kb, request=replace(REQUEST, query="q4"))
    assert kb.searches == 6
    monkeypatch.setattr(cache_module, "MOST_RESULTS", 3)
    kb.result = found()
    for number in range(9):
        await look(cache, kb, request=replace(REQUEST, query=f"small{number}"))
    assert len(cache) == 3


async def test_no_time_means_no_cache(kb: Kb) -> None:
    cache = SearchCache(kb, kb.identity, seconds=0)
    await look(cache, kb)
    await look(cache, kb)
    assert (kb.searches, len(cache)) == (2, 0)


async def test_a_result_larger_than_the_memory_is_not_kept(cache: SearchCache, kb: Kb) -> None:
    await look(cache, kb)
    kb.result = found("x" * 1024 * 1024)
    await look(cache, kb, tenant="globex")
    assert len(cache) == 1  # and what was there stays


@pytest.mark.parametrize("reason", [TimeoutError(), StoreBusy("5 reads have not come back")], ids=type)
async def test_a_ledger_that_does_not_answer_costs_the_memory_only(
    cache: SearchCache, kb: Kb, monkeypatch: pytest.MonkeyPatch, reason: Exception
) -> None:
    async def refuse(_: str) -> int:
        raise reason

    assert (await look(cache, kb)).hits
    monkeypatch.setattr(TenantKb, "sequence", refuse)
    assert await look(cache, kb) is kb.result
    assert (kb.searches, len(cache)) == (2, 1)


async def test_only_a_share_of_the_time_goes_into_remembering(
    cache: SearchCache, kb: Kb, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_: str) -> int:
        return await asyncio.Event().wait()

    monkeypatch.setattr(cache_module, "WORTH", 0.1)
    monkeypatch.setattr(TenantKb, "sequence", hang)
    assert await look(cache, kb, settings=RetrievalSettings(timeout=0.01)) is kb.result


async def test_what_two_searched_for_at_once_is_kept_once(cache: SearchCache, kb: Kb) -> None:
    together = asyncio.Barrier(2)

    async def search() -> SearchResult:
        await together.wait()
        return await kb.search()

    looks = (cache.search("acme", KB, PLAIN, REQUEST, search) for _ in range(2))
    await asyncio.gather(*looks)
    assert (kb.searches, len(cache)) == (2, 1)


class Shared:
    """What two processes share, with the seconds for which each value is to be kept."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], bytes] = {}
        self.seconds: set[float] = set()

    async def get(self, tenant_id: str, key: str) -> bytes | None:
        return self.values.get((tenant_id, key))

    async def put(self, tenant_id: str, key: str, value: bytes, seconds: float) -> None:
        self.values[tenant_id, key] = value
        self.seconds.add(seconds)


@pytest.fixture
def shared() -> Shared:
    return Shared()


@pytest.fixture
def processes(kb: Kb, shared: Shared) -> list[SearchCache]:
    return [SearchCache(kb, kb.identity, shared=shared) for _ in range(2)]


@pytest.mark.req("R-MOD-16")
async def test_processes_share_what_they_find_for_the_same_tenant_and_commit(
    processes: list[SearchCache], kb: Kb, shared: Shared
) -> None:
    one, other = processes
    first, again = await look(one, kb), await look(other, kb)
    assert (kb.searches, again.hits) == (1, first.hits)
    assert [stage.stage for stage in again.trace] == ["cache"]
    assert ({tenant for tenant, _ in shared.values}, shared.seconds) == ({"id 1"}, {60.0})
    await look(other, kb, tenant="globex")
    assert kb.searches == 2
    kb.numbers["acme"] += 1
    await look(other, kb)
    assert kb.searches == 3


async def test_less_than_a_whole_result_is_not_shared(processes: list[SearchCache], kb: Kb, shared: Shared) -> None:
    kb.result = found(degraded=("dense",))
    await look(processes[0], kb)
    assert shared.values == {}


async def test_a_shared_value_that_is_no_result_is_not_used(
    processes: list[SearchCache], kb: Kb, shared: Shared
) -> None:
    await look(processes[0], kb)
    shared.values = dict.fromkeys(shared.values, b"{}")
    assert (await look(processes[1], kb)).hits == found().hits
    assert kb.searches == 2
