"""Crawling over plain HTTP and HTML links, with robots.txt as RFC 9309 describes it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator

import pytest
from tests.doubles.web import Reply, Request, html, redirect
from tests.unit.ingest.sources.web_kit import Site, open_site

from ragstone.core.errors import FetchError, SourceError
from ragstone.fetch.exchange import Fetched
from ragstone.ingest.sources import paging as page_turns
from ragstone.ingest.sources.web import crawl
from ragstone.ingest.sources.web.crawl import CrawlConfig, CrawlSource, Links


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as site:
        yield site


def source(site: Site, **options: object) -> CrawlSource:
    return CrawlSource(CrawlConfig(**{"url": site.url("/")} | options), "site", site.context)


def linking(*hrefs: str, head: str = "") -> Reply:
    links = "".join(f'<p><a class=x href="{href}">go</a></p>' for href in hrefs)
    return html(f"<html><head>{head}</head><body>{links}</body></html>")


@pytest.mark.req("R-ING-05", "R-ING-47", "R-FUT-05")
async def test_links_are_followed_nearest_first(site: Site) -> None:
    site.web.on("/", linking("/a", "b#part", "/a?utm_source=x", "mailto:x@example.com", "https://other.example/"))
    site.web.on("/a", linking("/c", "/"))
    site.web.on("/b", html("B"))
    site.web.on("/c", html("C"))
    run = await site.run(source(site))
    assert run.ids == [site.url(path) for path in ("/", "/a", "/b", "/c")]
    assert run.listed == frozenset(run.ids)
    assert site.web.paths == ["/robots.txt", "/", "/a", "/b", "/c"]
    assert run.items[1].metadata["domain"] == "127.0.0.1"


async def test_a_second_crawl_gives_the_same_documents(site: Site) -> None:
    site.web.on("/", linking("/a"))
    site.web.on("/a", html("A"))
    first = await site.run(source(site))
    second = await site.run(source(site), first.cursor)
    assert second.items == first.items


async def test_depth_ends_a_crawl_that_is_still_complete(site: Site) -> None:
    site.web.on("/", linking("/1"))
    site.web.on("/1", linking("/2"))
    site.web.on("/2", html("2"))
    run = await site.run(source(site, max_depth=1))
    assert run.ids == [site.url("/"), site.url("/1")]
    assert run.listed == frozenset(run.ids)


def calendar(request: Request) -> Reply:
    number = int(request.path.removeprefix("/") or 0)
    return linking(f"/{number + 1}", f"/{number + 2}")


async def test_a_trap_ends_at_the_cap_and_nothing_is_removed(site: Site) -> None:
    for number in range(60):
        site.web.on(f"/{number or ''}", calendar)
    run = await site.run(source(site, max_pages=20, max_depth=20))
    assert len(run.ids) == 20
    assert len(site.web.requests) == 21
    assert run.listed is None


async def test_a_page_that_fails_keeps_what_there_was(site: Site) -> None:
    site.web.on("/", linking("/a", "/b", "/c"))
    site.web.on("/a", Reply(status=503))
    site.web.on("/b", html("B"))
    run = await site.run(source(site))
    assert run.ids == [site.url("/"), site.url("/b")]
    assert [failure.uri for failure in run.failures] == [site.url("/a")]
    assert run.listed is None


async def test_a_dead_link_is_no_failure(site: Site) -> None:
    site.web.on("/", linking("/gone"))
    run = await site.run(source(site))
    assert run.failures == []
    assert run.listed == {site.url("/")}


async def test_robots_and_pauses(patience_site: Site) -> None:
    site = patience_site
    site.web.on("/robots.txt", Reply(b"User-agent: *\nDisallow: /private\nCrawl-delay: 20"))
    site.web.on("/", linking("/private/x", "/a"))
    site.web.on("/a", html("A"))
    run = await site.run(source(site))
    assert run.ids == [site.url("/"), site.url("/a")]
    assert "/private/x" not in site.web.paths
    assert run.listed == frozenset(run.ids)
    (wait,) = site.waits
    assert 2 < wait <= 20


@pytest.fixture
async def patience_site() -> AsyncIterator[Site]:
    async with open_site(seconds_per_host=2.0) as site:
        yield site


async def test_a_site_that_wants_no_crawler_is_an_error(site: Site) -> None:
    site.web.on("/robots.txt", Reply(b"User-agent: *\nDisallow: /"))
    with pytest.raises(SourceError, match=r"robots\.txt"):
        await site.run(source(site))


@pytest.mark.parametrize("path", ["/robots.txt", "/"])
async def test_a_site_that_cannot_be_reached_is_an_error_and_not_empty(site: Site, path: str) -> None:
    site.web.on("/", html("x"))
    site.web.on(path, Reply(status=500))
    with pytest.raises(FetchError):
        await site.run(source(site))


async def test_patterns_say_what_is_read(site: Site) -> None:
    site.web.on("/", linking("/docs/a", "/docs/old/b", "/blog/c", "/docs/moved"))
    site.web.on("/docs/a", html("A"))
    site.web.on("/docs/moved", redirect("/blog/c"))
    site.web.on("/blog/c", html("C"))
    run = await site.run(source(site, include="/docs/*", exclude="/docs/old/*"))
    assert run.ids == [site.url("/"), site.url("/docs/a")]


async def test_redirects_count_as_where_they_lead(site: Site) -> None:
    site.web.on("/", redirect("/home"))
    site.web.on("/home", linking("/old", "/new", "/away"))
    site.web.on("/old", redirect("/new"))
    site.web.on("/new", html("N"))
    site.web.on("/away", redirect(site.web.url("/new", host="other.example")))
    run = await site.run(source(site))
    assert run.ids == [site.url("/home"), site.url("/new")]


async def test_the_canonical_page_stands_for_its_variants(site: Site) -> None:
    head = '<link rel="canonical" href="/list">'
    site.web.on("/", linking("/list?sort=a", "/list?sort=b"))
    site.web.on("/list?sort=a", linking(head=head))
    site.web.on("/list?sort=b", linking(head=head))
    site.web.on("/list", linking(head=head))
    assert (await site.run(source(site))).ids == [site.url("/"), site.url("/list")]
    run = await site.run(source(site, canonical=False))
    assert run.ids == [site.url("/"), site.url("/list?sort=a"), site.url("/list?sort=b")]


@pytest.mark.parametrize(
    "proper", [redirect("/a"), Reply(status=404), linking(head='<link rel="canonical" href="/a">')]
)
async def test_a_canonical_page_that_leads_nowhere_loses_nothing(site: Site, proper: Reply) -> None:
    site.web.on("/", linking("/a", "/b"))
    site.web.on("/a", html('<head><link rel="canonical" href="/proper"></head>A'))
    site.web.on("/b", html('<head><link rel="canonical" href="/proper"></head>B'))
    site.web.on("/proper", proper)
    run = await site.run(source(site))
    contents = b" ".join(item.content for item in run.items)
    assert b">A" in contents or b"/a" in contents
    assert run.listed == frozenset(run.ids)


async def test_other_kinds_of_files_are_documents_without_links(site: Site) -> None:
    site.web.on("/", linking("/paper.pdf", "/photo.JPG", "/style.css", "/notes.txt"))
    site.web.on("/paper.pdf", Reply(b"%PDF-1.7 <a href='/x'>", headers={"content-type": "application/pdf"}))
    site.web.on("/notes.txt", Reply(b"notes", headers={"content-type": "text/plain"}))
    run = await site.run(source(site))
    assert [(item.external_id, item.media_type) for item in run.items[1:]] == [
        (site.url("/paper.pdf"), "application/pdf"),
        (site.url("/notes.txt"), "text/plain"),
    ]


def links_of(markup: str) -> list[str]:
    page = Fetched("http://example.com/a/b", 200, {"content-type": "text/html"}, markup.encode("utf-8", "replace"))
    return list(Links(page).pages("example.com"))


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ("<A HREF=c>x</A>", ["http://example.com/a/c"]),
        ("<a title='x' href='?q=1&amp;r=2'>", ["http://example.com/a/b?q=1&r=2"]),
        ("<base href='/z/'><a href='c'>", ["http://example.com/z/c"]),
        ("<base href='http://127.0.0.1/'><a href='c'>", []),
        ("<area href=/m>", ["http://example.com/m"]),
        ("<a href=''><a name=x><a href>", []),
        ("<a href='   '>", ["http://example.com/a/b"]),
        ("<a href='javascript:x()'><a href='data:x'><a href='http://['><a href='//example.com:99999/'>", []),
        ("<a href='/" + "x" * 2001 + "'>", []),
        ("<a href='/\u0000\ud800'>", ["http://example.com/%EF%BF%BD"]),
        ("<abbr href=/x>", []),
    ],
)
def test_links_are_read_as_a_browser_would(markup: str, found: list[str]) -> None:
    assert links_of(markup) == found


def test_hostile_markup_is_read_in_one_go() -> None:
    assert links_of("<div>" * 200_000 + "<a href=c>") == ["http://example.com/a/c"]
    assert links_of("<a " * 200_000) == []
    assert links_of("<a href=c>" * 20_000) == ["http://example.com/a/c"]
    assert len(links_of("".join(f"<a href={number}>" for number in range(20_000)))) == 2000


@pytest.mark.parametrize("filler", ["<a b>" * crawl.MAX_TAGS, " " * crawl.MAX_LOOKED_AT], ids=["tags", "bytes"])
def test_only_so_much_of_a_page_is_looked_at(filler: str) -> None:
    page = Fetched("http://example.com/", 200, {}, f"<a href=a>{filler}<a href=b>".encode())
    links = Links(page)
    assert list(links.pages("example.com")) == ["http://example.com/a"]
    assert links.cut


async def test_a_page_with_more_links_than_are_looked_at_removes_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl, "MAX_TAGS", 1)
    site.web.on("/", linking("/a", "/b"))
    site.web.on("/a", html("A"))
    run = await site.run(source(site))
    assert run.ids == [site.url("/"), site.url("/a")]
    assert run.listed is None


async def test_links_are_read_while_other_work_goes_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    class Watched(Links):
        def __init__(self, fetched: Fetched) -> None:
            threads.append(threading.current_thread())
            super().__init__(fetched)

    monkeypatch.setattr(crawl, "Links", Watched)
    site.web.on("/", html("x"))
    await site.run(source(site))
    (thread,) = threads
    assert thread is not threading.current_thread()


async def test_a_slow_site_gives_what_it_has_so_far(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_turns, "PAGE_SECONDS", 0.0)
    site.web.on("/", linking("/dead", "/a", "/b"))
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B"))
    run = await site.run(source(site))
    assert [len(page.items) for page in run.pages] == [1, 0, 1, 1, 0]
    assert run.listed == {site.url("/"), site.url("/a"), site.url("/b")}
