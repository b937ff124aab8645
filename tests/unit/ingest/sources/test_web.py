"""Pages over HTTP as RFC 9110 describes it: validators, 304, 404 and 410."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from tests.doubles.web import Reply, html, redirect
from tests.unit.ingest.sources.web_kit import Site, open_site

from ragstone.core.types import Failure
from ragstone.ingest.sources import build_source
from ragstone.ingest.sources import paging as page_turns
from ragstone.ingest.sources.web import pages
from ragstone.ingest.sources.web.pages import WebConfig, WebSource

FIRST = datetime(2026, 1, 31, 9, tzinfo=UTC)
LATER = datetime(2026, 2, 1, 9, tzinfo=UTC)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as site:
        yield site


def source(site: Site, *paths: str) -> WebSource:
    return WebSource(WebConfig(urls=tuple(map(site.url, paths))), "pages", site.context)


@pytest.mark.req("R-ING-05", "R-ING-47")
async def test_a_page_is_a_document(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "now", lambda: FIRST)
    site.web.on("/a", html("<h1>A</h1>", Last_Modified="Wed, 21 Oct 2015 07:28:00 GMT"))
    run = await site.run(source(site, "/a"))
    (item,) = run.items
    assert item.content == b"<h1>A</h1>"
    assert (item.source, item.external_id, item.uri) == ("pages", site.url("/a"), site.url("/a"))
    assert item.media_type == "text/html"
    assert item.metadata == {
        "source_type": "web",
        "url": site.url("/a"),
        "scraped_date": "2026-01-31T09:00:00+00:00",
        "domain": "127.0.0.1",
    }
    assert item.modified_at == datetime(2015, 10, 21, 7, 28, tzinfo=UTC)
    assert run.listed == {site.url("/a")}


async def test_a_page_that_has_not_changed_costs_a_304(site: Site) -> None:
    page = html("A", ETag='"1"', Last_Modified="Wed, 21 Oct 2015 07:28:00 GMT")
    site.web.on("/a", page, Reply(status=304))
    first = await site.run(source(site, "/a"))
    second = await site.run(source(site, "/a"), first.cursor)
    assert second.items == []
    assert site.web.requests[1].headers["if-none-match"] == '"1"'
    assert site.web.requests[1].headers["if-modified-since"] == "Wed, 21 Oct 2015 07:28:00 GMT"
    assert second.cursor == first.cursor
    assert second.listed == {site.url("/a")}


async def test_the_date_changes_with_the_content_only(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.web.on("/a", html("A"), html("A"), html("B"))
    monkeypatch.setattr(pages, "now", lambda: FIRST)
    first = await site.run(source(site, "/a"))
    monkeypatch.setattr(pages, "now", lambda: LATER)
    second = await site.run(source(site, "/a"), first.cursor)
    assert second.items == first.items
    third = await site.run(source(site, "/a"), second.cursor)
    assert third.items[0].metadata["scraped_date"] == "2026-02-01T09:00:00+00:00"


@pytest.mark.parametrize("status", [404, 410])
async def test_a_page_that_is_gone_is_removed(site: Site, status: int) -> None:
    site.web.on("/a", html("A"), Reply(status=status))
    site.web.on("/b", html("B"))
    first = await site.run(source(site, "/a", "/b"))
    second = await site.run(source(site, "/a", "/b"), first.cursor)
    assert second.removed == [site.url("/a")]
    assert second.listed == {site.url("/b")}
    assert second.failures == []
    assert list(second.cursor["pages"]) == [site.url("/b")]


async def test_a_page_that_fails_is_reported_and_kept(site: Site) -> None:
    site.web.on("/a", html("A"), Reply(status=500))
    site.web.on("/b", Reply(b"half", cut=True))
    site.web.on("/c", html("C"))
    first = await site.run(source(site, "/a"))
    second = await site.run(source(site, "/a", "/b", "/c"), first.cursor)
    assert [failure.uri for failure in second.failures] == [site.url("/a"), site.url("/b")]
    assert {failure.code for failure in second.failures} == {"fetch_failed"}
    assert second.ids == [site.url("/c")]
    assert second.listed == {site.url("/a"), site.url("/b"), site.url("/c")}
    assert second.cursor["pages"][site.url("/a")] == first.cursor["pages"][site.url("/a")]


async def test_a_page_no_longer_named_is_removed(site: Site) -> None:
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B"))
    first = await site.run(source(site, "/a", "/b"))
    second = await site.run(source(site, "/b", "/b#part"), first.cursor)
    assert second.listed == {site.url("/b")}
    assert second.ids == [site.url("/b")]


async def test_many_pages_come_in_parts_and_a_cursor_goes_on_from_each(site: Site) -> None:
    paths = [f"/{number}" for number in range(20)]
    for path in paths:
        site.web.on(path, html(path, ETag='"x"'))
    run = await site.run(source(site, *paths))
    assert [len(page.items) for page in run.pages] == [16, 4]
    assert [page.listed is None for page in run.pages] == [True, False]
    await site.run(source(site, *paths), run.pages[0].cursor)
    assert ["if-none-match" in request.headers for request in site.web.requests[20:]] == [True] * 16 + [False] * 4


async def test_slow_pages_are_given_as_they_come(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_turns, "PAGE_SECONDS", 0.0)
    site.web.on("/a", html("A"))
    site.web.on("/b", Reply(status=500))
    site.web.on("/c", html("C"), Reply(status=304))
    first = await site.run(source(site, "/a", "/b", "/c"))
    assert [len(page.items) for page in first.pages] == [1, 1, 1]
    assert [page.listed for page in first.pages] == [None, None, frozenset(map(site.url, ("/a", "/b", "/c")))]
    second = await site.run(source(site, "/c", "/a"), first.cursor)
    assert [len(page.items) for page in second.pages] == [0, 1]


async def test_a_page_keeps_its_name_when_it_leads_on(site: Site) -> None:
    site.web.on("/old", redirect("/new"))
    site.web.on("/new", html("N"))
    (item,) = (await site.run(source(site, "/old"))).items
    assert (item.external_id, item.uri) == (site.url("/old"), site.url("/new"))


@pytest.mark.parametrize(
    ("kind", "body", "content"),
    [
        ("text/html; charset=windows-1252", "é€".encode("cp1252"), "\ufeffé€".encode()),
        ('text/html; charset="Shift_JIS"', "日本".encode("shift_jis"), "\ufeff日本".encode()),
        ("text/html; charset=utf-8", "é".encode("latin-1"), "é".encode("latin-1")),
        ("text/html; charset=punycode", b"\xff", b"\xff"),
        ("text/html; charset=utf-16", b"\xff", b"\xff"),
        ("text/html; charset=windows-1252", "é".encode(), "é".encode()),
    ],
)
async def test_the_headers_encoding_is_not_lost(site: Site, kind: str, body: bytes, content: bytes) -> None:
    site.web.on("/a", Reply(body, headers={"content-type": kind}))
    assert (await site.run(source(site, "/a"))).items[0].content == content


async def test_an_inner_address_is_a_failure_of_its_own(site: Site) -> None:
    site.web.on("/a", html("A"))
    config = WebConfig(urls=("http://169.254.169.254/latest/", site.url("/a")))
    run = await site.run(WebSource(config, "pages", site.context))
    assert run.failures == [
        Failure(
            "http://169.254.169.254/latest/",
            "address_refused",
            "169.254.169.254 leads to 169.254.169.254, which is not a public address",
            "an operator can allow the host, the address or its network with fetch.allow in ragstone.yaml, "
            "as in allow: [10.1.0.0/16]",
        )
    ]
    assert run.ids == [site.url("/a")]


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.com/", "http://a:b@example.com/", "example.com", ""]
)
def test_what_is_no_web_address_is_refused_in_the_settings(url: str) -> None:
    with pytest.raises(ValidationError):
        WebConfig(urls=(url,))


async def test_the_registry_knows_it(site: Site) -> None:
    built = build_source("web", "pages", {"urls": [site.url("/a")]}, site.context)
    assert isinstance(built, WebSource)
    await built.close()
