"""One search over the kb, databases and the web: who is asked when, and what a broken one does to the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragstone.core.errors import InputError, ModelError, RagstoneError, RemoteError, SourceError, StoreError
from ragstone.core.filters import parse_filter
from ragstone.core.protocols import RecordFindings
from ragstone.core.search import QueryType, SearchResult, Stage, WebFindings, WebResult
from ragstone.core.types import Hit, KnowledgeBase
from ragstone.query.cache import SearchCache
from ragstone.query.context import SearchRequest
from ragstone.query.routing.federation import FederatedSearch, RoutingOverrides
from ragstone.settings.retrieval import RetrievalSettings

HIT = Hit("c", "d", "Ferry", "uri", "", None, "It leaves at nine.", 0.5, {}, {}, 0, 18)
ROW = Hit("row:1", "row:1", "Day ticket", "database:shop/tickets#1", "", None, "12 EUR", 1.0, {}, {}, 0, 6)
PAGE = WebResult("Ferry", "https://ferry.example/", "It leaves at ten.", "", "double")
KB = KnowledgeBase(1, "default", None)
PRICE = "how much is the day ticket for the ferry to the northern islands"
TIMELY, PLAIN = "ferry times today", "which pier does the ferry to the northern islands leave from"


class World:
    """A kb and a web that note when they are asked; `sure` is how far the kb's passage is about the query."""

    def __init__(self, *, sure: float = 1.0, hits: tuple[Hit, ...] = (HIT,)) -> None:
        self.sure = sure
        self.hits = hits
        self.error: RagstoneError | None = None
        self.problem = ""
        self.asked: list[str] = []
        self.together: asyncio.Barrier | None = None
        self.about: frozenset[QueryType] = frozenset({"product"})
        self.broken: SourceError | None = None
        self.unread = ""
        self.undecided = False

    async def rows(self, tenant: str, query: str, of: QueryType) -> RecordFindings:
        self.asked.append(f"database:{tenant}:{of}")
        if self.together:
            await self.together.wait()
        if self.broken:
            raise self.broken
        return RecordFindings((ROW,), self.unread)

    def of(self, tenant: str) -> World:
        return self

    async def sequence(self) -> int:
        return 1

    async def search(self, tenant: str, kb: KnowledgeBase, request: SearchRequest) -> SearchResult:
        self.asked.append(f"kb:{request.mode}")
        if self.together:
            await self.together.wait()
        if self.error:
            raise self.error
        return SearchResult(request.query, request.query, request.mode, self.hits, (), (), 1.0)

    async def find(self, tenant: str, query: str) -> WebFindings:
        self.asked.append(f"web:{tenant}:{query}")
        if self.together:
            await self.together.wait()
        return WebFindings(query, () if self.problem else (PAGE,), problem=self.problem)

    async def identity(self, tenant: str) -> str:
        return tenant

    async def confidence(self, found: SearchResult) -> float:
        self.judged = found.hits
        if self.undecided:
            await asyncio.Event().wait()
        return self.sure


class Rows:
    """The databases of a world."""

    def __init__(self, world: World) -> None:
        self.about = world.about
        self.find = world.rows


async def look(
    world: World,
    query: str,
    *,
    web: bool = True,
    rows: bool = False,
    overrides: RoutingOverrides | None = None,
    where: dict[str, Any] | None = None,
    **settings: Any,
) -> SearchResult:
    pipeline: Any = world
    cache = SearchCache(world, world.identity, seconds=0)
    federated = FederatedSearch(lambda _: pipeline, cache, world.find if web else None, Rows(world) if rows else None)
    retrieval = RetrievalSettings(**{"routing": "auto"} | settings)
    request = SearchRequest(query, 10, "balanced", "hybrid", "rrf", 100, where=parse_filter(where))
    return await federated.search("acme", KB, retrieval, request, world.confidence, overrides or RoutingOverrides())


@pytest.mark.req("R-MOD-18", "R-FUT-16", "R-FUT-27")
async def test_kb_and_web_are_asked_at_the_same_time_for_what_changes() -> None:
    world = World()
    world.together = asyncio.Barrier(2)
    found = await asyncio.wait_for(look(world, TIMELY), 240)
    assert (found.route, found.hits, found.web) == ("web", (HIT,), (PAGE,))
    assert [one.stage for one in found.trace] == ["analyse", "web"]


@pytest.mark.req("R-MOD-19")
async def test_the_web_is_left_alone_when_the_kb_suffices() -> None:
    world = World(sure=0.4)
    found = await look(world, PLAIN)
    assert (found.route, found.web, world.asked) == ("retrieve", (), ["kb:balanced"])
    assert found.trace[1:] == (Stage("web", 0.0, 0, 0, "the passages suffice"),)


@pytest.mark.req("R-MOD-19")
@pytest.mark.parametrize(("sure", "hits", "sufficient"), [(0.39, (HIT,), 0.4), (0.8, (HIT,), 0.9), (1, (), 0)])
async def test_and_asked_when_it_does_not(sure: float, hits: tuple[Hit, ...], sufficient: float) -> None:
    found = await look(World(sure=sure, hits=hits), PLAIN, sufficient=sufficient)
    assert (found.route, found.hits, found.web) == ("web", hits, (PAGE,))


@pytest.mark.req("R-MOD-19", "R-REL-17")
async def test_and_when_a_model_does_not_say_in_time_whether_it_does(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.undecided = True
    found = await asyncio.wait_for(look(world, PLAIN, timeout=0.05), 10)
    assert (found.route, found.hits, found.web) == ("web", (HIT,), (PAGE,))
    assert caplog.messages == ["asking the web: whether the passages suffice could not be told within 0.05 s"]


@pytest.mark.req("R-MOD-12")
async def test_small_talk_is_looked_for_nowhere_and_depth_follows_the_query() -> None:
    world = World()
    found = await look(world, "hello!")
    assert (found.route, found.hits, found.trace[0].skipped) == ("none", (), "small talk")
    await look(world, "opening hours")
    await look(world, "compare the two ferries")
    await look(world, "opening hours", overrides=RoutingOverrides(mode=True))
    assert world.asked == ["kb:fast", "kb:thorough", "kb:balanced"]


@pytest.mark.parametrize("query", ["hello!", TIMELY, "opening hours"])
async def test_without_routing_a_search_is_a_search(query: str) -> None:
    world = World(sure=0)
    found = await look(world, query, routing="off")
    assert (found.route, world.asked) == ("retrieve", ["kb:balanced"])


@pytest.mark.parametrize("query", ["hello!", PLAIN])
@pytest.mark.parametrize("routing", ["auto", "off"])
async def test_who_asks_for_the_web_gets_it(query: str, routing: str) -> None:
    found = await look(World(), query, routing=routing, overrides=RoutingOverrides(web=True))
    assert (found.route, found.web) == ("web", (PAGE,))


async def test_who_does_not_want_it_does_not() -> None:
    world = World(sure=0)
    assert (await look(world, TIMELY, overrides=RoutingOverrides(web=False))).web == ()
    assert world.asked == ["kb:fast"]


async def test_asking_for_a_web_that_is_not_set_up() -> None:
    with pytest.raises(InputError, match=r"^no web search is set up$"):
        await look(World(), PLAIN, web=False, overrides=RoutingOverrides(web=True))


@pytest.mark.req("R-REL-04")
async def test_a_web_that_fails_is_named_and_the_kb_answers() -> None:
    world = World()
    world.problem = "double is down"
    found = await look(world, TIMELY)
    assert (found.hits, found.web, found.degraded) == ((HIT,), (), ("web: double is down",))


@pytest.mark.req("R-REL-03")
@pytest.mark.parametrize("query", [TIMELY, PLAIN])
async def test_a_kb_that_fails_is_named_and_the_web_answers(query: str) -> None:
    world = World()
    world.error = StoreError("the disk is gone")
    found = await look(world, query)
    assert (found.hits, found.web, found.degraded) == ((), (PAGE,), ("documents: the disk is gone",))


@pytest.mark.req("R-REL-03")
@pytest.mark.parametrize("kind", [StoreError, RemoteError, ModelError])
async def test_sources_that_all_fail_are_named_and_the_result_is_empty(kind: type[RagstoneError]) -> None:
    world = World()
    world.error, world.problem, world.broken = kind("it is gone"), "double is down", SourceError("no rows")
    found = await look(world, PRICE, rows=True)
    assert (found.hits, found.web, found.records) == ((), (), ())
    assert found.degraded == ("documents: it is gone", "database: no rows", "web: double is down")


@pytest.mark.parametrize("ask", [{"web": False}, {"routing": "off"}])
async def test_with_no_other_source_its_failure_is_raised(ask: dict[str, Any]) -> None:
    world = World()
    world.error = StoreError("the disk is gone")
    with pytest.raises(StoreError):
        await look(world, PLAIN, **ask)


@pytest.mark.req("R-MOD-18", "R-QRY-15", "R-FUT-16")
async def test_databases_are_asked_beside_the_kb_for_what_they_know() -> None:
    world = World()
    world.together = asyncio.Barrier(2)
    found = await asyncio.wait_for(look(world, PRICE, web=False, rows=True), 240)
    assert (found.hits, found.records, found.route) == ((HIT,), (ROW,), "retrieve")
    assert sorted(world.asked) == ["database:acme:product", "kb:balanced"]
    assert [(one.stage, one.left) for one in found.trace] == [("analyse", 2), ("database", 1)]
    assert found.analysis is not None
    assert (found.analysis.type, found.analysis.sources) == ("product", ("documents", "database"))


@pytest.mark.parametrize("ask", [{"query": PLAIN}, {"query": PRICE, "routing": "off"}])
async def test_databases_are_left_alone_otherwise(ask: dict[str, Any]) -> None:
    world = World()
    found = await look(world, **ask, rows=True)
    assert (found.records, world.asked) == ((), ["kb:balanced"])


@pytest.mark.req("R-REL-02")
async def test_a_database_that_fails_leaves_the_documents(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.broken = SourceError("database 'shop': it is down")
    found = await look(world, PRICE, web=False, rows=True)
    assert (found.hits, found.records) == ((HIT,), ())
    assert found.degraded == ("database: database 'shop': it is down",)
    assert caplog.messages == ["Database unavailable: database 'shop': it is down"]


async def test_who_filters_is_given_no_rows() -> None:
    world = World()
    found = await look(world, PRICE, web=False, rows=True, where={"team": "sales"})
    assert (found.hits, found.records, world.asked) == ((HIT,), (), ["kb:balanced"])
    assert found.analysis is not None
    assert found.analysis.sources == ("documents",)
    assert (await look(world, PRICE, web=False, rows=True, where={})).records == (ROW,)


@pytest.mark.req("R-REL-02")
async def test_rows_that_could_not_be_read_leave_those_that_could(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.unread = "database 'stock': it is down"
    found = await look(world, PRICE, web=False, rows=True)
    assert (found.hits, found.records) == ((HIT,), (ROW,))
    assert found.degraded == ("database: database 'stock': it is down",)
    assert caplog.messages == ["Database unavailable: database 'stock': it is down"]


@pytest.mark.req("R-MOD-19")
async def test_rows_count_when_it_is_told_whether_the_web_is_needed() -> None:
    world = World(sure=0.9, hits=())
    found = await look(world, PRICE, rows=True)
    assert (found.route, found.web, world.judged) == ("retrieve", (), (ROW,))
    assert [one.stage for one in found.trace] == ["analyse", "database", "web"]


async def test_rows_answer_where_the_kb_cannot() -> None:
    world = World()
    world.error = StoreError("the disk is gone")
    found = await look(world, PRICE, web=False, rows=True)
    assert (found.records, found.degraded) == ((ROW,), ("documents: the disk is gone",))


async def test_asked_for_the_web_is_asked_at_once_and_databases_too() -> None:
    world = World()
    world.together = asyncio.Barrier(3)
    found = await asyncio.wait_for(look(world, PRICE, rows=True, overrides=RoutingOverrides(web=True)), 240)
    assert (found.hits, found.records, found.web) == ((HIT,), (ROW,), (PAGE,))
    assert found.analysis is not None
    assert found.analysis.sources == ("documents", "database", "internet")
