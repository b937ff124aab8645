"""Sitemaps as sitemaps.org describes them: urlset, sitemapindex, lastmod, gzip."""

from __future__ import annotations

import gzip
import threading
from collections.abc import AsyncIterator

import pytest
from tests.doubles.web import Reply, html, xml
from tests.unit.ingest.sources.web_kit import Site, open_site

from ragstone.core.errors import FetchError, SourceError
from ragstone.ingest.sources import paging as page_turns
from ragstone.ingest.sources.web import safe_xml, sitemap
from ragstone.ingest.sources.web.safe_xml import Records, read_records
from ragstone.ingest.sources.web.sitemap import SitemapConfig, SitemapSource

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as site:
        yield site


def source(site: Site, **options: object) -> SitemapSource:
    config = SitemapConfig(**{"url": site.url("/sitemap.xml")} | options)
    return SitemapSource(config, "docs", site.context)


def urlset(site: Site, *pages: str | tuple[str, str]) -> str:
    entries = [(page, "") if isinstance(page, str) else page for page in pages]
    urls = "".join(
        f"<url><loc> {site.url(path)} </loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>"
        for path, date in entries
    )
    return f'<?xml version="1.0"?><urlset {NAMESPACE}>{urls}</urlset>'


def index(site: Site, *paths: str) -> str:
    maps = "".join(f"<sitemap><loc>{site.url(path)}</loc></sitemap>" for path in paths)
    return f"<sitemapindex {NAMESPACE}>{maps}</sitemapindex>"


@pytest.mark.req("R-ING-05", "R-ING-47")
async def test_listed_pages_are_documents(site: Site) -> None:
    site.web.on("/sitemap.xml", xml(urlset(site, "/a", "/b", "/a")))
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B"))
    run = await site.run(source(site))
    assert run.ids == [site.url("/a"), site.url("/b")]
    assert run.listed == {site.url("/a"), site.url("/b")}
    assert run.items[0].metadata["source_type"] == "web"


async def test_only_pages_with_another_date_are_read_again(site: Site) -> None:
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B", ETag='"b"'), Reply(status=304))
    site.web.on("/c", html("C"))
    site.web.on(
        "/sitemap.xml",
        xml(urlset(site, ("/a", "2026-01-01"), ("/b", "2026-01-01"), "/c")),
        xml(urlset(site, ("/a", "2026-01-01"), ("/b", "2026-01-02"), "/c")),
    )
    first = await site.run(source(site))
    asked = len(site.web.requests)
    second = await site.run(source(site), first.cursor)
    assert [request.path for request in site.web.requests[asked:]] == ["/robots.txt", "/sitemap.xml", "/b", "/c"]
    assert second.ids == [site.url("/c")]
    assert second.listed == {site.url("/a"), site.url("/b"), site.url("/c")}
    third = await site.run(source(site), second.cursor)
    assert third.ids == [site.url("/c")]


async def test_an_index_leads_to_further_sitemaps_packed_or_not(site: Site) -> None:
    site.web.on("/sitemap.xml", xml(index(site, "/1.xml", "/2.xml.gz", "/sitemap.xml")))
    site.web.on("/1.xml", xml(urlset(site, "/a")))
    site.web.on("/2.xml.gz", Reply(gzip.compress(urlset(site, "/b").encode())))
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B"))
    run = await site.run(source(site))
    assert run.listed == {site.url("/a"), site.url("/b")}
    assert site.web.paths.count("/sitemap.xml") == 1


async def test_while_a_part_cannot_be_read_nothing_is_removed(site: Site) -> None:
    site.web.on("/sitemap.xml", xml(index(site, "/1.xml", "/2.xml")))
    site.web.on("/1.xml", xml(urlset(site, "/a")))
    site.web.on("/2.xml", xml(urlset(site, ("/b", "2026-01-01"))), Reply(status=503))
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B"))
    first = await site.run(source(site))
    second = await site.run(source(site), first.cursor)
    assert [(failure.uri, failure.code) for failure in second.failures] == [(site.url("/2.xml"), "fetch_failed")]
    assert second.listed is None
    assert site.url("/b") in second.cursor["pages"]


async def test_more_pages_than_wanted_are_cut_and_it_is_said(site: Site) -> None:
    site.web.on("/sitemap.xml", xml(urlset(site, "/a", "/b", "/c")))
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B"))
    run = await site.run(source(site, max_pages=2))
    assert run.ids == [site.url("/a"), site.url("/b")]
    assert run.listed is None
    assert [failure.code for failure in run.failures] == ["too_large"]


async def test_an_index_without_end_comes_to_one(site: Site) -> None:
    site.web.on("/sitemap.xml", xml(index(site, *(f"/{number}.xml" for number in range(500)))))
    run = await site.run(source(site))
    assert len([path for path in site.web.paths if path.endswith(".xml")]) == 100
    assert run.listed is None


async def test_patterns_and_other_hosts(site: Site) -> None:
    body = urlset(site, "/docs/a", "/docs/old/b", "/blog/c").replace(
        "</urlset>", "<url><loc>https://other.example/x</loc></url><url><loc>file:///etc/passwd</loc></url></urlset>"
    )
    site.web.on("/sitemap.xml", xml(body))
    site.web.on("/docs/a", html("A"))
    run = await site.run(source(site, include="/docs/*", exclude=("/docs/old/*",)))
    assert run.ids == [site.url("/docs/a")]
    assert run.listed == {site.url("/docs/a")}


async def test_a_listed_page_that_is_gone_is_removed(site: Site) -> None:
    site.web.on("/sitemap.xml", xml(urlset(site, "/a", "/b")))
    site.web.on("/b", html("B"))
    run = await site.run(source(site))
    assert run.removed == [site.url("/a")]
    assert run.listed == {site.url("/b")}


async def test_robots_are_asked(site: Site) -> None:
    site.web.on("/robots.txt", Reply(b"User-agent: *\nDisallow: /private"))
    site.web.on("/sitemap.xml", xml(urlset(site, "/private/a", "/b")))
    site.web.on("/b", html("B"))
    run = await site.run(source(site))
    assert run.ids == [site.url("/b")]
    assert [failure.code for failure in run.failures] == ["robots_disallow"]


BOMB = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 9))


@pytest.mark.parametrize(
    "prolog",
    [
        '<!DOCTYPE urlset SYSTEM "http://127.0.0.1:9/evil.dtd">',
        '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        f'<!DOCTYPE urlset [<!ENTITY l0 "lol">{BOMB}]>',
        '<!DOCTYPE urlset [<!ENTITY % p SYSTEM "http://127.0.0.1:9/p"> %p;]>',
        "<!DOCTYPE urlset>",
    ],
)
async def test_a_document_type_is_refused(site: Site, prolog: str) -> None:
    """FAULTS 32."""
    body = urlset(site, "/a").replace("?>", f"?>{prolog}", 1)
    site.web.on("/sitemap.xml", xml(body))
    with pytest.raises(SourceError, match="declares a document type or entities"):
        await site.run(source(site))
    assert site.web.paths == ["/robots.txt", "/sitemap.xml"]


async def test_an_inclusion_is_refused(site: Site) -> None:
    """FAULTS 32."""
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/>'
    site.web.on("/sitemap.xml", xml(urlset(site, "/a").replace("</urlset>", include + "</urlset>")))
    with pytest.raises(SourceError, match="XInclude"):
        await site.run(source(site))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=500), FetchError),
        (Reply(status=404), FetchError),
        (Reply(b"<urlset>half of it", cut=True), FetchError),
        (Reply(b"<urlset><url>"), SourceError),
        (Reply(b""), SourceError),
        (Reply(b"\x1f\x8b damaged"), SourceError),
        (Reply(gzip.compress(b" " * 60 * 1024 * 1024)), FetchError),
    ],
    ids=["500", "404", "cut", "broken", "empty", "damaged", "bomb"],
)
async def test_a_sitemap_that_cannot_be_read_is_an_error(site: Site, reply: Reply, error: type[Exception]) -> None:
    site.web.on("/sitemap.xml", reply)
    with pytest.raises(error):
        await site.run(source(site))


async def test_nesting_without_end_is_read(site: Site) -> None:
    site.web.on("/sitemap.xml", xml("<urlset>" + "<a>" * 100_000 + "</a>" * 100_000 + "</urlset>"))
    assert (await site.run(source(site))).listed == frozenset()


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("<a/>" * 600, "more than 500 elements"),
        ("<url>" + "<a/>" * 600, "more than 500 elements"),
        ("<url><loc>" + "\n" * 2000, "more than 2,000 tags and lines"),
        ("<a " + " ".join(f"a{number}=''" for number in range(200_000)) + "/>", "a tag or comments of more than 1 MB"),
        (f"<!--{' ' * 1_500_000}-->", "a tag or comments of more than 1 MB"),
    ],
    ids=["elements", "fields", "lines", "attributes", "comment"],
)
async def test_more_than_a_sitemap_needs_is_refused_before_its_end(
    site: Site, monkeypatch: pytest.MonkeyPatch, body: str, complaint: str
) -> None:
    monkeypatch.setattr(safe_xml, "MAX_ELEMENTS", 500)
    monkeypatch.setattr(safe_xml, "MAX_EVENTS", 2000)
    site.web.on("/sitemap.xml", xml(f"<urlset>{body} <and then it breaks"))
    with pytest.raises(SourceError, match=complaint) as caught:
        await site.run(source(site))
    assert caught.value.code == "source_failed"


async def test_entries_behind_the_last_that_the_protocol_allows_are_not_read(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemap, "MAX_ENTRIES", 2)
    body = urlset(site, "/a", "/b", "/c").replace("</urlset>", "<and then it breaks")
    site.web.on("/sitemap.xml", xml(body))
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B"))
    run = await site.run(source(site))
    assert run.ids == [site.url("/a"), site.url("/b")]
    assert run.listed is None
    (failure,) = run.failures
    assert failure.code == "too_large"
    assert failure.error.endswith("or one of them has more than 2 entries")


async def test_a_plain_sitemap_may_be_no_larger_than_a_packed_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "MAX_BYTES", 100)
    site.web.on("/sitemap.xml", xml(urlset(site, "/a")))
    with pytest.raises(FetchError, match=r"sitemap\.xml has more than"):
        await site.run(source(site))


async def test_a_sitemap_is_read_while_other_work_goes_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def watched(content: bytes, name: str, wanted: frozenset[str], most: int) -> Records:
        threads.append(threading.current_thread())
        return read_records(content, name, wanted, most)

    monkeypatch.setattr(sitemap, "read_records", watched)
    site.web.on("/sitemap.xml", xml(urlset(site)))
    await site.run(source(site))
    (thread,) = threads
    assert thread is not threading.current_thread()


async def test_a_slow_site_makes_progress_page_by_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_turns, "PAGE_SECONDS", 0.0)
    site.web.on("/sitemap.xml", xml(index(site, "/1.xml", "/2.xml")))
    site.web.on("/1.xml", xml(urlset(site, ("/a", "2026-01-01"))))
    site.web.on("/2.xml", xml(urlset(site, ("/gone", "2026-01-01"), ("/b", "2026-01-01"))))
    site.web.on("/a", html("A"))
    site.web.on("/b", html("B"))
    run = await site.run(source(site), {"pages": {}})
    looked, read = run.pages[:3], run.pages[3:]
    assert [(page.items, page.cursor, page.listed) for page in looked] == [((), {"pages": {}}, None)] * 3
    assert [len(page.items) for page in read] == [1, 0, 1, 0]
    assert read[1].removed == (site.url("/gone"),)
    assert run.listed == {site.url("/a"), site.url("/b")}
    rest = await site.run(source(site), read[0].cursor)
    assert rest.ids == [site.url("/b")]
