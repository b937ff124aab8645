"""Hacker News: Algolia's search_by_date (hits, page, nbPages, nbHits; at most 1,000 hits of a query) and the
Firebase API (topstories.json and the like, item/ID.json, null for an item that does not exist)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest
from tests.doubles.web import Reply, Request, html, json_reply
from tests.unit.ingest.sources.web_kit import Site, open_site

from ragstone.core.errors import FetchError, SourceError
from ragstone.ingest.sources import paging as page_turns
from ragstone.ingest.sources.web.hacker_news import HackerNewsConfig, HackerNewsSource

START = 1_700_000_000


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as site:
        yield site


def source(site: Site, **options: object) -> HackerNewsSource:
    return HackerNewsSource(HackerNewsConfig(**{"base_url": site.url("/")} | options), "hn", site.context)


def hit(number: int, created: int, **fields: object) -> dict[str, object]:
    return {
        "objectID": str(number),
        "title": f"Story {number}",
        "url": f"https://example.com/{number}",
        "author": "pg",
        "points": 10,
        "story_text": None,
        "num_comments": 3,
        "created_at": "2023-11-14T22:13:20Z",
        "created_at_i": created,
        "_tags": ["story", "author_pg"],
    } | fields


class Algolia:
    """Answers the way the service does, its cap included."""

    def __init__(self, hits: Iterable[dict[str, object]]) -> None:
        self.hits = sorted(hits, key=lambda hit: -int(str(hit["created_at_i"])))

    def __call__(self, request: Request) -> Reply:
        since, until = request.query["numericFilters"].split(",")
        low, high = int(since.removeprefix("created_at_i>")), int(until.removeprefix("created_at_i<="))
        found = [hit for hit in self.hits if low < int(str(hit["created_at_i"])) <= high]
        size, page = int(request.query["hitsPerPage"]), int(request.query["page"])
        reachable = found[:1000]
        return json_reply(
            {
                "hits": reachable[page * size : (page + 1) * size],
                "nbHits": len(found),
                "page": page,
                "nbPages": -(-len(reachable) // size),
                "hitsPerPage": size,
            }
        )


@pytest.mark.req("R-ING-04", "R-ING-47")
async def test_a_hit_is_a_document(site: Site) -> None:
    site.web.on("/search_by_date", Algolia([hit(1, START, story_text="<p>Ask</p>")]))
    run = await site.run(source(site, stories="search", query="rag", days=7000))
    (story,) = run.items
    assert (story.external_id, story.uri, story.title) == ("1", "https://example.com/1", "Story 1")
    assert b"<h1>Story 1</h1>" in story.content
    assert b"<p>Ask</p>" in story.content
    assert story.metadata == {
        "source_type": "hacker_news",
        "url": "https://example.com/1",
        "published_date": "2023-11-14T22:13:20+00:00",
        "source": "Hacker News",
        "author": "pg",
        "points": 10,
        "comments": 3,
        "discussion": "https://news.ycombinator.com/item?id=1",
    }
    request = site.web.requests[0]
    assert (request.query["query"], request.query["tags"]) == ("rag", "story")


async def test_all_hits_are_read_though_the_search_shows_a_thousand(site: Site) -> None:
    algolia = Algolia([hit(number, START + number // 3) for number in range(2500)])
    site.web.on("/search_by_date", algolia)
    first = await site.run(source(site, stories="search", days=7000))
    assert sorted(map(int, first.ids)) == list(range(2500))
    assert len(first.ids) == 2500
    assert first.cursor == {"since": START + 2499 // 3}
    algolia.hits.insert(0, hit(9999, START + 5000))
    second = await site.run(source(site, stories="search", days=7000), first.cursor)
    assert second.ids == ["9999"]


async def test_an_interrupted_run_goes_on_where_it_was(site: Site) -> None:
    site.web.on("/search_by_date", Algolia([hit(number, START + number) for number in range(1500)]))
    reader = source(site, stories="search", days=7000)
    run = await site.run(reader)
    resumed = await site.run(reader, run.pages[3].cursor)
    done = {item.external_id for page in run.pages[:4] for item in page.items}
    assert done | set(resumed.ids) == set(run.ids)
    assert len(resumed.ids) == 1101
    assert resumed.cursor == run.cursor == {"since": START + 1499}


async def test_slow_linked_pages_are_given_as_they_come(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_turns, "PAGE_SECONDS", 0.0)
    site.web.on("/page", html("<p>the article</p>"))
    site.web.on(
        "/search_by_date", Algolia([hit(number, START + number, url=site.url("/page")) for number in (1, 2, 3)])
    )
    reader = source(site, stories="search", days=7000, full_text=True)
    run = await site.run(reader)
    assert [len(page.items) for page in run.pages[:3]] == [1, 1, 1]
    assert run.pages[0].cursor == run.pages[1].cursor == run.pages[2].cursor
    resumed = await site.run(reader, run.pages[0].cursor)
    assert resumed.ids == run.ids == ["3", "2", "1"]
    assert resumed.cursor == run.cursor == {"since": START + 3}


async def test_a_second_with_more_than_the_search_shows_comes_to_an_end(site: Site) -> None:
    hits = [hit(number, START) for number in range(1100)] + [hit(5000, START - 10)]
    site.web.on("/search_by_date", Algolia(hits))
    run = await site.run(source(site, stories="search", days=7000))
    assert len(run.ids) == 1001
    assert "5000" in run.ids


async def test_points_are_counted_a_day_later(site: Site) -> None:
    site.web.on("/search_by_date", Algolia([hit(1, START), hit(2, START, points=99), hit(3, START, points=None)]))
    run = await site.run(source(site, stories="search", days=7000, min_points=50))
    assert run.ids == ["2"]
    assert "points" not in site.web.requests[0].query["numericFilters"]


def front(site: Site, *stories: dict[str, object] | None, name: str = "top") -> None:
    numbered = list(enumerate(stories, 1))
    site.web.on(f"/{name}stories.json", json_reply([number for number, _ in numbered]))
    for number, story in numbered:
        site.web.on(f"/item/{number}.json", json_reply({"id": number, "type": "story"} | story if story else None))


def told(title: str, **fields: object) -> dict[str, object]:
    return {"by": "dang", "descendants": 5, "score": 42, "time": START, "title": title} | fields


@pytest.mark.parametrize("stories", ["top", "new", "best"])
async def test_front_pages_are_read(site: Site, stories: str) -> None:
    front(site, told("Linked", url="https://example.com/x"), told("Ask HN", text="Why &amp; how?"), name=stories)
    first, second = (await site.run(source(site, stories=stories))).items
    assert (first.uri, first.metadata["points"], first.metadata["comments"]) == ("https://example.com/x", 42, 5)
    assert second.uri == "https://news.ycombinator.com/item?id=2"
    assert b"Why &amp; how?" in second.content


async def test_each_story_is_read_once(site: Site) -> None:
    front(site, told("a"), told("b"))
    first = await site.run(source(site))
    front(site, told("a"), told("b"), told("c"))
    second = await site.run(source(site), first.cursor)
    assert second.ids == ["3"]


async def test_dead_deleted_and_missing_stories_are_passed_over(site: Site) -> None:
    front(site, told("a", dead=True), {"deleted": True}, None, told("d", url="javascript:x()"))
    run = await site.run(source(site))
    assert run.ids == ["4"]
    assert run.items[0].uri == "https://news.ycombinator.com/item?id=4"
    assert run.failures == []


async def test_a_story_may_still_get_its_points(site: Site) -> None:
    front(site, told("a", score=1), told("b"))
    first = await site.run(source(site, min_points=40))
    assert first.ids == ["2"]
    front(site, told("a", score=41), told("b"))
    assert (await site.run(source(site, min_points=40), first.cursor)).ids == ["1"]


async def test_a_story_that_is_not_served_yet_is_asked_for_again(site: Site) -> None:
    front(site, None, told("b"))
    first = await site.run(source(site))
    assert first.ids == ["2"]
    front(site, told("a"), told("b"))
    assert (await site.run(source(site), first.cursor)).ids == ["1"]


async def test_stories_that_are_passed_over_are_not_silent(site: Site) -> None:
    front(site, told("a", score=1), None)
    assert [page.items for page in (await site.run(source(site, min_points=40))).pages] == [(), ()]


async def test_a_story_that_fails_is_reported_and_asked_for_again(site: Site) -> None:
    front(site, told("a"), told("b"))
    site.web.on("/item/1.json", Reply(status=500))
    first = await site.run(source(site))
    assert first.ids == ["2"]
    assert [failure.uri for failure in first.failures] == ["https://news.ycombinator.com/item?id=1"]
    front(site, told("a"), told("b"))
    assert (await site.run(source(site), first.cursor)).ids == ["1"]


@pytest.mark.req("R-ING-04")
async def test_the_linked_page_can_be_fetched(site: Site) -> None:
    site.web.on("/page", html("<p>the article</p>"))
    front(site, told("a", url=site.url("/page")), told("b", url="http://10.0.0.1/"))
    run = await site.run(source(site, full_text=True))
    assert run.items[0].content == b"<p>the article</p>"
    assert b"<h1>b</h1>" in run.items[1].content
    assert [failure.code for failure in run.failures] == ["address_refused"]


async def test_a_busy_service_is_waited_for(site: Site) -> None:
    front(site, told("a"))
    site.web.on("/topstories.json", Reply(status=429, headers={"retry-after": "3"}), json_reply([1]))
    assert (await site.run(source(site))).ids == ["1"]
    assert site.waits == [3.0]


@pytest.mark.parametrize("stories", ["top", "search"])
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=500), FetchError),
        (Reply(b'{"hits": [', cut=True), FetchError),
        (Reply(b"not json"), SourceError),
        (Reply(b"[" * 100_000), SourceError),
        (json_reply({"error": "x"}), SourceError),
        (json_reply("x"), SourceError),
    ],
    ids=["500", "cut", "text", "deep", "other", "string"],
)
async def test_a_service_that_is_not_itself_is_an_error(
    site: Site, stories: str, reply: Reply, error: type[Exception]
) -> None:
    site.web.on("/topstories.json", reply)
    site.web.on("/search_by_date", reply)
    with pytest.raises(error):
        await site.run(source(site, stories=stories))


async def test_strange_values_do_no_harm(site: Site) -> None:
    strange = [hit(1, START, points=10**30, num_comments="x", url=7), {"objectID": None}, "x", None]
    site.web.on("/search_by_date", json_reply({"hits": strange, "nbPages": "many"}))
    run = await site.run(source(site, stories="search", days=7000))
    assert run.ids == ["1"]
    assert run.items[0].metadata["comments"] == 0
