from __future__ import annotations

import threading

import pytest
from tests.doubles.web import Reply, WebDouble, html
from tests.unit.fetch.conftest import MakeFetcher, Patience

from ragstone.core.errors import AddressRefused, FetchError
from ragstone.fetch import polite as robots
from ragstone.fetch.polite import MAX_BYTES, Disallowed, PoliteFetcher, Robots, Rules, read_rules

SITE = "http://example.com"
RULES = """\ufeff
User-agent: other
Disallow: /

User-Agent: Ragstone # us
Disallow: /private
Allow: /private/open
Disallow: /*.pdf$
Crawl-delay: 3

User-agent: *
Disallow: /all

Sitemap: http://example.com/map.xml
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("/private/x", False),
        ("/private/open/x", True),
        ("/a.pdf", False),
        ("/a.pdfs", True),
        ("/all", True),
    ],
)
def test_the_group_of_this_crawler_counts(path: str, allowed: bool) -> None:
    assert read_rules(RULES, "ragstone").allow(SITE + path) is allowed


def test_without_a_group_of_its_own_the_general_one_counts() -> None:
    rules = read_rules(RULES, "somebody")
    assert not rules.allow(SITE + "/all/x")
    assert rules.allow(SITE + "/private/x")
    assert rules.delay == 0.0


def test_delay_and_sitemaps_are_read() -> None:
    rules = read_rules(RULES, "ragstone")
    assert rules.delay == 3.0
    assert rules.sitemaps == ("http://example.com/map.xml",)
    assert read_rules("User-agent: *\nCrawl-delay: 1e12", "ragstone").delay == 60.0
    assert read_rules("User-agent: *\nCrawl-delay: nan", "ragstone").delay == 0.0


def test_thousands_of_crawlers_times_thousands_of_rules_are_kept_once() -> None:
    names = "".join(f"User-agent: bot{number}\n" for number in range(12_000))
    rules = read_rules(names + "".join(f"Disallow: /{number}\n" for number in range(12_000)), "ragstone")
    assert rules.allow(SITE + "/1")
    assert len(rules.parsed._user_agents) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_no_file_means_no_rules(web: WebDouble, make_fetcher: MakeFetcher, status: int) -> None:
    web.on("/robots.txt", Reply(status=status))
    assert (await Robots(make_fetcher()).rules(web.url("/a?b=c"))).allow(web.url("/a"))
    assert web.paths == ["/robots.txt"]


@pytest.mark.parametrize("reply", [Reply(status=500), Reply(status=429), Reply(reset=True), Reply(b"x" * 600_000)])
async def test_a_file_that_cannot_be_read_closes_the_site(
    web: WebDouble, make_fetcher: MakeFetcher, reply: Reply
) -> None:
    web.on("/robots.txt", reply)
    with pytest.raises(FetchError, match="cannot be read, so nothing of this site is fetched"):
        await PoliteFetcher(make_fetcher()).get(web.url("/a"))
    assert web.paths == ["/robots.txt"]


async def test_each_site_is_asked_once_and_pages_wait_their_turn(
    web: WebDouble, make_fetcher: MakeFetcher, patience: Patience
) -> None:
    web.on("/robots.txt", Reply(b"User-agent: *\nDisallow: /no\nCrawl-delay: 30"))
    web.on("/a", html("a"))
    polite = PoliteFetcher(make_fetcher())
    assert (await polite.get(web.url("/a"))).content == b"a"
    await polite.get(web.url("/a"))
    with pytest.raises(Disallowed, match=r"the robots\.txt of 127\.0\.0\.1 asks not to fetch") as refused:
        await polite.get(web.url("/no/x"))
    assert refused.value.code == "robots_disallow"
    assert web.paths == ["/robots.txt", "/a", "/a"]
    (wait,) = patience.waits
    assert 1 < wait <= 30


async def test_robots_can_be_left_out(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/a", html("a"))
    await PoliteFetcher(make_fetcher(robots=False)).get(web.url("/a"))
    await PoliteFetcher(make_fetcher(), robots=False).get(web.url("/a"))
    assert web.paths == ["/a", "/a"]


async def test_a_refused_address_stays_refused(make_fetcher: MakeFetcher) -> None:
    with pytest.raises(AddressRefused):
        await PoliteFetcher(make_fetcher(allow=())).get("http://10.0.0.1/")


async def test_large_files_of_many_sites_are_not_all_remembered(
    web: WebDouble, make_fetcher: MakeFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b"Disallow: /private\n"
    web.on("/robots.txt", Reply(b"User-agent: *\n" + line * (MAX_BYTES // 2 // len(line) - 1)))
    known = Robots(make_fetcher())
    read = known._read

    async def read_here(place: str) -> Rules:
        return await read(web.url("/robots.txt"))

    monkeypatch.setattr(known, "_read", read_here)
    for number in range(8):
        assert not (await known.rules(f"http://site{number}.example/")).allow(web.url("/private"))
    assert len(known._known) == 4
    await known.rules("http://site4.example/")
    await known.rules("http://site8.example/")
    assert "http://site4.example/robots.txt" in known._known
    assert "http://site5.example/robots.txt" not in known._known
    assert len(web.paths) == 9


async def test_no_more_than_so_many_sites_are_remembered(
    make_fetcher: MakeFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Robots(make_fetcher())

    async def nothing(place: str) -> Rules:
        return Rules("ragstone")

    monkeypatch.setattr(known, "_read", nothing)
    monkeypatch.setattr(robots, "KEPT_SITES", 3)
    for number in range(5):
        await known.rules(f"http://site{number}.example/")
    assert [place[7:12] for place in known._known] == ["site2", "site3", "site4"]


async def test_rules_are_parsed_beside_the_loop(
    web: WebDouble, make_fetcher: MakeFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.on("/robots.txt", Reply(b"User-agent: *\nDisallow: /no"))
    threads = []

    def parse(text: str, agent: str) -> Rules:
        threads.append(threading.current_thread())
        return read_rules(text, agent)

    monkeypatch.setattr(robots, "read_rules", parse)
    assert not (await Robots(make_fetcher()).rules(web.url("/"))).allow(web.url("/no"))
    assert threads != [threading.main_thread()]
