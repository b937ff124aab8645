"""The engines against doubles that speak each one's protocol and refuse what the real one would refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.doubles.rest import RestDouble
from tests.doubles.web import Reply, Request, json_reply

from ragstone.core.errors import SettingsError
from ragstone.core.protocols import WebSearch
from ragstone.core.search import WebResult
from ragstone.settings.web import WebSettings
from ragstone.websearch import build_web_search

KEY = "k-secret"
PAGES = [
    ("Oriental Spice", "https://www.fragrance.example/spice", "Oud & amber base notes."),
    ("Perfume guide", "https://guide.example/", "How scents are made."),
    ("A trap", "javascript:alert(1)", "Not a page."),
    ("The same again", "https://guide.example/", "Another word."),
]


def searxng(request: Request) -> Reply:
    assert (request.method, request.path) == ("GET", "/search")
    assert request.query == {"q": "oriental spice", "format": "json"}
    assert "authorization" not in request.headers
    found = [{"title": a, "url": b, "content": c, "publishedDate": "2026-01-31T10:00:00"} for a, b, c in PAGES]
    return json_reply({"query": "oriental spice", "results": found, "answers": [], "unresponsive_engines": []})


def brave(request: Request) -> Reply:
    assert (request.method, request.path) == ("GET", "/res/v1/web/search")
    assert request.query == {"q": "oriental spice", "count": "3"}
    assert request.headers["x-subscription-token"] == KEY
    assert request.headers["accept"] == "application/json"
    found = [
        {
            "title": f"<strong>{a}</strong>",
            "url": b,
            "description": c.replace("&", "&amp;"),
            "page_age": "2026-01-31T10:00:00",
        }
        for a, b, c in PAGES
    ]
    return json_reply({"type": "search", "web": {"type": "search", "results": found}})


def tavily(request: Request) -> Reply:
    assert (request.method, request.path, request.query) == ("POST", "/search", {})
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.body) == {"query": "oriental spice", "max_results": 3, "search_depth": "basic"}
    found = [
        {"title": a, "url": b, "content": c, "score": 0.9, "published_date": "Sat, 31 Jan 2026 10:00:00 GMT"}
        for a, b, c in PAGES
    ]
    return json_reply({"query": "oriental spice", "results": found, "response_time": 0.1})


def google(request: Request) -> Reply:
    assert (request.method, request.path) == ("GET", "/customsearch/v1")
    assert request.query == {"cx": "engine-1", "q": "oriental spice", "num": "3"}
    assert request.headers["x-goog-api-key"] == KEY
    tags = {"metatags": [{"article:published_time": "2026-01-31T10:00:00+00:00"}]}
    found = [{"title": a, "link": b, "snippet": c, "pagemap": tags} for a, b, c in PAGES]
    return json_reply({"kind": "customsearch#search", "items": found})


ENGINES: dict[str, tuple[Callable[[Request], Reply], str, dict[str, Any]]] = {
    "searxng": (searxng, "", {}),
    "brave": (brave, "/res/v1/web/search", {"api_key": KEY}),
    "tavily": (tavily, "/search", {"api_key": KEY}),
    "google": (google, "/customsearch/v1", {"api_key": KEY, "engine_id": "engine-1"}),
}
EMPTY = {"searxng": {"results": []}, "brave": {"type": "search"}, "tavily": {"results": []}, "google": {}}


def engine(kind: str, double: RestDouble, **options: Any) -> WebSearch:
    _, path, needed = ENGINES[kind]
    return build_web_search(WebSettings(kind=kind, url=f"http://{double.host}{path}", **needed, **options))


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def double(kind: str) -> Iterator[RestDouble]:
    with RestDouble(ENGINES[kind][0]) as double:
        yield double


@pytest.mark.req("R-CSA-04")
async def test_results_are_plain_and_pages_come_once(kind: str, double: RestDouble) -> None:
    searching = engine(kind, double)
    found = await searching.search(" oriental\nspice ", 3)
    await searching.close()
    assert found == [
        WebResult("Oriental Spice", PAGES[0][1], "Oud & amber base notes.", "2026-01-31", kind),
        WebResult("Perfume guide", PAGES[1][1], "How scents are made.", "2026-01-31", kind),
    ]
    assert len(double.requests) == 1
    assert double.requests[0].headers["user-agent"] == "ragstone"


async def test_nothing_found_is_a_result(kind: str, double: RestDouble) -> None:
    double.faults.append(json_reply(EMPTY[kind]))
    searching = engine(kind, double)
    assert await searching.search("oriental spice", 3) == []
    await searching.close()


async def test_no_more_than_were_asked_for(kind: str, double: RestDouble) -> None:
    with RestDouble(lambda request: ENGINES[kind][0](_with_three(request))) as generous:
        searching = engine(kind, generous)
        assert [one.title for one in await searching.search("oriental spice", 1)] == ["Oriental Spice"]
        await searching.close()


def _with_three(request: Request) -> Request:
    """The same request for three: engines may send more than they were asked for."""
    query = {name: "3" if name in ("count", "num") else value for name, value in request.query.items()}
    body = request.body.replace(b'"max_results":1', b'"max_results":3')
    body = body.replace(b'"max_results": 1', b'"max_results":3')
    return Request(request.method, request.path, query, request.headers, body)


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"kind": "searxng"}, "web.url"),
        ({"kind": "brave"}, "web.api_key"),
        ({"kind": "tavily"}, "web.api_key"),
        ({"kind": "google", "api_key": KEY}, "web.engine_id"),
        ({"kind": "fixture"}, "web.path"),
    ],
)
def test_what_an_engine_needs_is_named(settings: dict[str, Any], missing: str) -> None:
    with pytest.raises(ValueError, match=f"needs {missing}"):
        WebSettings(**settings)


def test_an_address_must_be_one() -> None:
    with pytest.raises(SettingsError, match=r"^web\.url is not an address: 'localhost:8888/search'$"):
        build_web_search(WebSettings(kind="searxng", url="localhost:8888"))


async def test_a_proxy_before_searxng_may_want_a_key() -> None:
    def proxy(request: Request) -> Reply:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        return json_reply({"results": []})

    with RestDouble(proxy) as double:
        searching = build_web_search(WebSettings(kind="searxng", url=f"http://{double.host}/search/", api_key=KEY))
        assert await searching.search("x", 3) == []
        await searching.close()
    assert double.requests[0].path == "/search"
