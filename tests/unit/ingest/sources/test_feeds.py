"""Feeds as RSS 2.0, RSS with content:encoded, and Atom (RFC 4287) describe them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.doubles.web import Reply, html, xml
from tests.unit.ingest.sources.web_kit import Run, Site, open_site

from ragstone.core.errors import FetchError, SourceError
from ragstone.ingest.sources import paging as page_turns
from ragstone.ingest.sources.web.feeds import FeedsConfig, FeedsSource
from ragstone.settings.tree import LimitSettings


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as site:
        yield site


def source(site: Site, *paths: str, **options: object) -> FeedsSource:
    return FeedsSource(FeedsConfig(urls=tuple(map(site.url, paths or ("/rss",))), **options), "news", site.context)


def rss(*items: str, title: str = "The News") -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/">'
        f"<channel><title>{title}</title><link>http://news.example/</link>{''.join(items)}</channel></rss>"
    )


def item(number: int, text: str = "", extra: str = "") -> str:
    return (
        f"<item><title>Story {number} &amp; more</title><link>/story/{number}</link><guid>urn:story:{number}</guid>"
        "<pubDate>Sat, 31 Jan 2026 10:00:00 +0100</pubDate>"
        f"<description>{text or f'Text {number}'}</description>{extra}</item>"
    )


ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom News</title><id>urn:feed</id>
<entry><id>tag:news.example,2026:1</id><title type="html">A &lt;b&gt;title&lt;/b&gt;</title>
<link rel="alternate" href="http://news.example/1"/><updated>2026-01-31T09:00:00Z</updated><author><name>Ada</name></author>
<summary>short</summary><content type="html">&lt;p&gt;The whole text&lt;/p&gt;</content></entry>
<entry><id>2</id><title>Plain</title>
<published>2026-02-01T00:00:00Z</published><content type="text">a &lt; b</content></entry></feed>"""


@pytest.mark.req("R-ING-04", "R-ING-47")
async def test_an_rss_item_is_a_document(site: Site) -> None:
    body = "<content:encoded><![CDATA[<p>The <b>whole</b> text</p>]]></content:encoded>"
    site.web.on("/rss", xml(rss(item(1, extra=body))))
    run = await site.run(source(site))
    (article,) = run.items
    assert (article.external_id, article.uri, article.title) == ("urn:story:1", site.url("/story/1"), "Story 1 & more")
    assert b"<p>The <b>whole</b> text</p>" in article.content
    assert article.content.startswith(b"<!doctype html>")
    assert article.media_type == "text/html"
    assert article.metadata == {
        "source_type": "rss",
        "url": site.url("/story/1"),
        "published_date": "2026-01-31T09:00:00+00:00",
        "source": "The News",
    }
    assert article.modified_at == datetime(2026, 1, 31, 9, tzinfo=UTC)
    assert run.listed is None


async def test_atom_entries_are_documents(site: Site) -> None:
    site.web.on("/rss", xml(ATOM))
    first, second = (await site.run(source(site))).items
    assert first.external_id == "tag:news.example,2026:1"
    assert b"<p>The whole text</p>" in first.content
    assert first.metadata["author"] == "Ada"
    assert first.metadata["source"] == "Atom News"
    assert second.external_id == f"{site.url('/rss')}#2"
    assert (second.content, second.media_type) == ("a < b", "text/plain")
    assert second.uri.startswith(f"{site.url('/rss')}#")


async def test_the_same_id_in_two_feeds_is_two_documents(site: Site) -> None:
    plain = "<item><guid isPermaLink='false'>7</guid><title>x</title></item>"
    site.web.on("/rss", xml(rss(plain)))
    site.web.on("/other", xml(rss(plain)))
    assert (await site.run(source(site, "/rss", "/other"))).ids == [f"{site.url('/rss')}#7", f"{site.url('/other')}#7"]


@pytest.mark.parametrize("forged", [item(1, "forged"), item(1, "forged").replace("urn:story:1", "")])
async def test_no_feed_writes_over_the_articles_of_another(site: Site, forged: str) -> None:
    linked = "<item><link>/story/1</link><description>linked</description></item>"
    site.web.on("/rss", xml(rss(item(1), linked)))
    site.web.on("/other", xml(rss(forged)))
    run = await site.run(source(site, "/rss", "/other"))
    assert len(set(run.ids)) == 3
    assert [name.partition("#")[0] for name in run.ids] == [site.url("/rss")] * 2 + [site.url("/other")]


async def test_articles_keep_their_names_when_a_second_feed_is_added(site: Site) -> None:
    site.web.on("/rss", xml(rss(item(1))), xml(rss(item(2), item(1, "changed"))))
    site.web.on("/other", xml(rss(item(1, "forged"))))
    first = await site.run(source(site))
    assert first.ids == ["urn:story:1"]
    second = await site.run(source(site, "/rss", "/other"), first.cursor)
    rest, other = f"{site.url('/rss')}#urn:story:2", f"{site.url('/other')}#urn:story:1"
    assert second.ids == [rest, "urn:story:1", other]
    third = await site.run(source(site), second.cursor)
    assert third.ids == []


async def test_of_two_feeds_that_share_a_name_since_before_the_first_keeps_it(site: Site) -> None:
    site.web.on("/rss", xml(rss(item(1))))
    site.web.on("/other", xml(rss(item(1, "forged"))))
    cursor = {"feeds": {site.url(path): {"entries": {"urn:story:1": "before"}} for path in ("/rss", "/other")}}
    run = await site.run(source(site, "/rss", "/other"), cursor)
    assert run.ids == ["urn:story:1", f"{site.url('/other')}#urn:story:1"]


async def test_an_unchanged_feed_costs_a_304(site: Site) -> None:
    site.web.on("/rss", xml(rss(item(1)), ETag='"1"', Last_Modified="Sat, 31 Jan 2026 09:00:00 GMT"), Reply(status=304))
    first = await site.run(source(site))
    second = await site.run(source(site), first.cursor)
    assert second.items == []
    assert site.web.requests[1].headers["if-none-match"] == '"1"'
    assert site.web.requests[1].headers["if-modified-since"] == "Sat, 31 Jan 2026 09:00:00 GMT"
    assert second.cursor == first.cursor


async def test_only_new_and_changed_entries_come_again(site: Site) -> None:
    site.web.on("/rss", xml(rss(item(1), item(2))), xml(rss(item(3), item(2, "other"), item(1))))
    first = await site.run(source(site))
    assert first.ids == ["urn:story:1", "urn:story:2"]
    second = await site.run(source(site), first.cursor)
    assert second.ids == ["urn:story:3", "urn:story:2"]


@pytest.mark.req("R-ING-04")
async def test_the_whole_page_can_be_fetched(site: Site) -> None:
    site.web.on("/rss", xml(rss(item(1), item(2)), ETag='"1"'))
    site.web.on("/story/1", html("<p>all of it</p>"))
    site.web.on("/story/2", Reply(status=503), Reply(status=503), Reply(status=503), html("<p>now</p>"))
    first = await site.run(source(site, full_text=True))
    assert first.items[0].content == b"<p>all of it</p>"
    assert b"Text 2" in first.items[1].content
    assert [failure.uri for failure in first.failures] == [site.url("/story/2")]
    second = await site.run(source(site, full_text=True), first.cursor)
    assert [(article.external_id, article.content) for article in second.items] == [("urn:story:2", b"<p>now</p>")]
    assert site.web.paths.count("/story/1") == 1


async def test_a_run_that_breaks_off_among_slow_pages_goes_on_behind_them(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_turns, "PAGE_SECONDS", 0.0)
    site.web.on("/rss", xml(rss(item(1), item(2)), ETag='"1"'), xml(rss(item(3), item(2, "new"), item(1)), ETag='"2"'))
    for number in (1, 2, 3):
        site.web.on(f"/story/{number}", html(f"<p>{number}</p>"))
    first = await site.run(source(site, full_text=True))
    assert [Run([page]).ids for page in first.pages[:2]] == [["urn:story:1"], ["urn:story:2"]]
    second = await site.run(source(site, full_text=True), first.cursor)
    assert second.ids == ["urn:story:3", "urn:story:2"]
    resumed = await site.run(source(site, full_text=True), second.pages[0].cursor)
    assert resumed.ids == ["urn:story:2"]
    assert [request.headers.get("if-none-match") for request in site.web.requests if request.path == "/rss"] == [
        None,
        '"1"',
        None,
    ]
    assert resumed.cursor == second.cursor


async def test_what_a_run_that_broke_off_did_not_take_in_comes_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_turns, "PAGE_SECONDS", 0.0)
    site.web.on("/rss", xml(rss(item(1), item(2))))
    site.web.on("/story/1", *[Reply(status=503)] * 3, html("<p>now</p>"))
    site.web.on("/story/2", html("<p>2</p>"))
    first = await site.run(source(site, full_text=True))
    assert [len(page.items) for page in first.pages[:2]] == [2, 1]
    resumed = await site.run(source(site, full_text=True), first.pages[1].cursor)
    assert [article.content for article in resumed.items] == [b"<p>now</p>"]


async def test_many_slow_feeds_without_news_are_not_silent(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.web.on("/rss", xml(rss(item(1))))
    site.web.on("/other", xml(rss(item(2))))
    first = await site.run(source(site, "/rss", "/other"))
    monkeypatch.setattr(page_turns, "PAGE_SECONDS", 0.0)
    second = await site.run(source(site, "/rss", "/other"), first.cursor)
    assert [len(page.items) for page in second.pages] == [0, 0, 0]


async def test_a_page_that_is_gone_is_not_asked_for_again(site: Site) -> None:
    site.web.on("/rss", xml(rss(item(1))))
    first = await site.run(source(site, full_text=True))
    assert b"Text 1" in first.items[0].content
    assert [failure.code for failure in first.failures] == ["fetch_failed"]
    await site.run(source(site, full_text=True), first.cursor)
    assert site.web.paths.count("/story/1") == 1


async def test_one_feed_that_fails_does_not_stop_the_others(site: Site) -> None:
    site.web.on("/rss", Reply(status=500))
    site.web.on("/other", xml(rss(item(1))))
    run = await site.run(source(site, "/rss", "/other"))
    assert run.ids == [f"{site.url('/other')}#urn:story:1"]
    assert [(failure.uri, failure.code) for failure in run.failures] == [(site.url("/rss"), "fetch_failed")]


@pytest.mark.parametrize("reply", [Reply(status=500), Reply(status=404), Reply(b"<rss", cut=True), Reply(reset=True)])
async def test_when_no_feed_can_be_read_it_is_an_error(site: Site, reply: Reply) -> None:
    site.web.on("/rss", reply)
    with pytest.raises(FetchError):
        await site.run(source(site))


async def test_a_busy_server_is_waited_for(site: Site) -> None:
    site.web.on("/rss", Reply(status=429, headers={"retry-after": "9"}), xml(rss(item(1))))
    assert (await site.run(source(site))).ids == ["urn:story:1"]
    assert site.waits == [9.0]


@pytest.mark.parametrize("body", [b"<html><body>no feed</body></html>", b"just text", b"{}", b"\x00\x01\x02"])
async def test_what_is_no_feed_is_an_error(site: Site, body: bytes) -> None:
    site.web.on("/rss", Reply(body))
    with pytest.raises(Exception, match=r"no RSS or Atom feed|is not text"):
        await site.run(source(site))


@pytest.mark.parametrize(
    "body",
    [
        rss(item(1), item(2, "a & b")),
        rss(item(1), item(2)).removesuffix("</channel></rss>"),
        rss(item(1), item(2)).replace("<channel>", "<channel><unknown:tag/>"),
    ],
    ids=["ampersand", "end", "prefix"],
)
async def test_of_broken_xml_what_can_be_had_is_had_and_it_is_said(site: Site, body: str) -> None:
    site.web.on("/rss", xml(body))
    run = await site.run(source(site))
    assert run.ids == ["urn:story:1", "urn:story:2"]
    assert [failure.code for failure in run.failures] == ["broken_xml"]


@pytest.mark.parametrize(
    ("kind", "encoding", "declaration"),
    [
        ("application/xml", "utf-8", ""),
        ("application/xml", "utf-16", ""),
        ("application/xml", "windows-1252", '<?xml version="1.0" encoding="windows-1252"?>'),
        ("text/xml; charset=iso-8859-1", "iso-8859-1", ""),
        ("application/xml", "utf-8", '<?xml version="1.0" encoding="punycode"?>'),
        ("text/xml; charset=punycode", "utf-8", '<?xml version="1.0" encoding="nonsense"?>'),
    ],
)
async def test_any_encoding_is_read(site: Site, kind: str, encoding: str, declaration: str) -> None:
    text = rss(item(1), title="Café").partition("?>")[2]
    site.web.on("/rss", Reply((declaration + text).encode(encoding), headers={"content-type": kind}))
    run = await site.run(source(site))
    assert run.items[0].metadata["source"] == "Café"
    assert run.failures == []


BOMB = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 9))


@pytest.mark.parametrize(
    "prolog",
    [
        '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE rss SYSTEM "http://127.0.0.1:9/evil.dtd">',
        f'<!DOCTYPE rss [<!ENTITY l0 "lol">{BOMB}]>',
        '<!DOCTYPE rss [<!ENTITY a "plain">]>',
        '<!doctype rss><!ENTITY a "plain">',
    ],
)
@pytest.mark.parametrize("end", ["</channel></rss>", ""], ids=["whole", "broken"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
async def test_a_document_type_is_refused(site: Site, prolog: str, end: str, encoding: str) -> None:
    """FAULTS 32."""
    text = rss(item(1)).partition("?>")[2].removesuffix("</channel></rss>") + end
    site.web.on("/rss", Reply((prolog + text.replace("Text 1", "&x;&l8;&a;")).encode(encoding)))
    with pytest.raises(SourceError, match="declares a document type or entities"):
        await site.run(source(site))
    assert site.web.paths == ["/rss"]


async def test_an_inclusion_is_refused(site: Site) -> None:
    """FAULTS 32."""
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/>'
    site.web.on("/rss", xml(rss(item(1, include))))
    with pytest.raises(SourceError, match="XInclude"):
        await site.run(source(site))


async def test_an_article_may_speak_of_document_types(site: Site) -> None:
    site.web.on("/rss", xml(rss(item(1, "<![CDATA[<!DOCTYPE html> and <!ENTITY x> explained]]>"))))
    run = await site.run(source(site))
    assert b"explained" in run.items[0].content
    assert run.failures == []


async def test_a_feed_that_is_the_name_of_a_file_is_not_opened(site: Site) -> None:
    site.web.on("/rss", Reply(b"/etc/passwd"))
    with pytest.raises(SourceError, match="no RSS or Atom feed"):
        await site.run(source(site))


@pytest.mark.parametrize("body", ["<item>" * 6000, "<a>" * 250_000, "<" * 250_000])
async def test_a_feed_that_would_take_minutes_is_refused(site: Site, body: str) -> None:
    site.web.on("/rss", xml(f"<rss><channel>{body}"))
    with pytest.raises(SourceError, match="has more than"):
        await site.run(source(site))


ABSURD = 300_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "body",
    [
        "\n" * ABSURD + rss(item(1)),
        f"<!--{chr(10) * ABSURD}-->" + rss(item(1)).partition("?>")[2],
        f"<?a {'encoding=~' * (ABSURD // 10)}?>".replace("~", '"') + rss(item(1)).partition("?>")[2],
        rss(item(1)).replace("Sat, 31", f"Sat,{' ' * ABSURD}31"),
        rss(item(1, f"<![CDATA[a{' ' * ABSURD}b]]>")),
    ],
    ids=["before the root", "comment", "instruction", "date", "text"],
)
async def test_absurd_runs_cost_no_more_than_their_length(site: Site, body: str) -> None:
    """Each of these took hours, in the one process that serves everybody."""
    site.web.on("/rss", xml(body))
    assert (await site.run(source(site))).ids == ["urn:story:1"]


async def test_a_feed_that_keeps_the_parser_busy_costs_a_child_and_not_the_others(site: Site) -> None:
    author = f"<author>{'a' * 3_000_000}@</author>"
    site.web.on("/rss", xml(rss(item(1, extra=author))))
    site.web.on("/other", xml(rss(item(2))))
    context = replace(site.context, limits=LimitSettings(parse_seconds=2))
    config = FeedsConfig(urls=(site.url("/rss"), site.url("/other")))
    run = await site.run(FeedsSource(config, "news", context))
    assert run.ids == [f"{site.url('/other')}#urn:story:2"]
    assert [(failure.uri, failure.code) for failure in run.failures] == [(site.url("/rss"), "source_failed")]
    assert "more time or memory" in run.failures[0].error


async def test_entries_with_nothing_but_text_have_an_id_too(site: Site) -> None:
    site.web.on("/rss", xml(rss("<item><description>only this</description></item>")), xml(rss()))
    first = await site.run(source(site))
    assert len(first.ids) == 1
    assert first.ids[0].startswith(f"{site.url('/rss')}#")
    assert (await site.run(source(site), first.cursor)).removed == []


async def test_dates_that_no_calendar_has_are_left_out(site: Site) -> None:
    site.web.on("/rss", xml(rss("<item><guid>urn:1</guid><pubDate>Mon, 99 Foo 99999</pubDate></item>")))
    (article,) = (await site.run(source(site))).items
    assert "published_date" not in article.metadata
    assert article.modified_at is None


async def test_links_into_the_inside_are_not_followed(site: Site) -> None:
    body = item(1).replace("/story/1", "http://169.254.169.254/latest/meta-data/")
    site.web.on("/rss", xml(rss(body)))
    run = await site.run(source(site, full_text=True))
    assert [failure.code for failure in run.failures] == ["address_refused"]
    assert b"Text 1" in run.items[0].content
