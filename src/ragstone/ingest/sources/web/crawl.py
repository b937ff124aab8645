"""A site's pages, found by following its links from one page on."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import urlsplit

from pydantic import Field

from ragstone.core.errors import FetchError, SourceError
from ragstone.core.types import Failure, Item, Json, Page, failure_of
from ragstone.fetch.exchange import Fetched
from ragstone.fetch.polite import Disallowed, PoliteFetcher
from ragstone.fetch.urls import canonical_link, canonical_url, redact_url
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.paging import PageTurn
from ragstone.ingest.sources.web.pages import GONE, PageReader, WebAddress, Words, media_type
from ragstone.ingest.sources.web.sitemap import matches_path
from ragstone.settings.base import SettingsModel

MAX_HREF = 2000
MAX_LINKS = 2000
MAX_TAGS = 20_000
MAX_LOOKED_AT = 5 * 1024 * 1024
"""No page that people made has more links, tags of them or bytes; a page that was made to harm has."""
_HTML = ("text/html", "application/xhtml+xml", "")
# Tags are cut out first and parsed apart: a tree of a hundred thousand nested elements takes minutes to build.
_TAG = re.compile(r"<(?:a|area|base|link)\s[^<>]{1,4000}>", re.IGNORECASE)
_NO_PAGE = re.compile(
    r"\.(?:7z|avi|bmp|bz2|css|dmg|eot|exe|gif|gz|ico|iso|jar|jpe?g|js|json|mov|mp[34]|mpe?g|ogg|otf|png|rar|rss"
    r"|svg|tar|tgz|tiff?|ttf|wav|web[mp]|woff2?|xml|xz|zip)",
    re.IGNORECASE,
)


class CrawlConfig(SettingsModel):
    """The start and the bounds of a crawl."""

    url: WebAddress
    max_pages: int = Field(default=100, ge=1, le=10_000)
    """The most addresses to ask for, so that a calendar without end comes to one."""
    max_depth: int = Field(default=3, ge=0, le=20)
    """The most links that a page may be away from the start."""
    include: Words = ()
    """Patterns over a page's path, such as `/docs/*`; the start is read in any case."""
    exclude: Words = ()
    canonical: bool = True
    """Read the page that a page calls canonical instead of it."""


@dataclass
class Frontier:
    """The pages of a site that are known so far."""

    room: int
    """The number of addresses that may still be asked for."""
    seen: set[str]
    """Addresses that were asked for or will be."""
    queue: deque[tuple[str, int]] = field(default_factory=deque)
    pending: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """Pages that became documents."""
    aside: dict[str, list[str]] = field(default_factory=dict)
    """Pages that wait for the one they call canonical, by that one."""
    as_they_are: set[str] = field(default_factory=set)
    """Pages whose canonical one could not be had."""
    complete: bool = True

    def add(self, url: str, depth: int) -> None:
        """Ask for an address later, if there is room for it."""
        if url in self.seen:
            return
        if not self.room:
            self.complete = False
            return
        self.room -= 1
        self.seen.add(url)
        self.pending.add(url)
        self.queue.append((url, depth))

    def settle(self, asked: str, depth: int) -> None:
        """Go back to what was set aside for an address that did not become a document."""
        for url in self.aside.pop(asked, ()):
            if asked not in self.read and url not in self.read:
                self.as_they_are.add(url)
                self.seen.discard(url)
                self.add(url, depth)

    def next(self) -> tuple[str, int] | None:
        """Return the nearest address that is left."""
        if not self.queue:
            return None
        url, depth = self.queue.popleft()
        self.pending.remove(url)
        return url, depth


class CrawlSource(StatelessSource):
    """Follows links inside one host, nearest first, with robots.txt and pauses."""

    def __init__(self, config: CrawlConfig, name: str, context: SourceContext) -> None:
        self._config = config
        self._name = name
        self._fetcher = PoliteFetcher(context.fetcher)

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield all pages; what is no longer found is removed, if the crawl saw everything there is."""
        reader = PageReader(self._name, self._fetcher, cursor)
        start = await self._start()
        host = urlsplit(start.url).netloc
        first = canonical_url(start.url)
        frontier = Frontier(self._config.max_pages - 1, {self._config.url, first})
        entries: list[Item | Failure] = []
        turn = PageTurn()
        step: tuple[str, int] | None = (first, 0)
        fetched: Fetched | Failure | None = start
        while step:
            links = await _links(fetched)
            entries += self._take(reader, frontier, step[1], fetched, links, host)
            frontier.settle(*step)
            if turn.due(len(entries)):
                yield Page(tuple(entries), reader.cursor)
                entries, turn = [], PageTurn()
            step = frontier.next()
            fetched = await self._get(step[0]) if step else None
        found = frozenset(frontier.read)
        reader.keep_only(found)
        yield Page(tuple(entries), reader.cursor, listed=found if frontier.complete else None)

    async def _start(self) -> Fetched:
        try:
            return await self._fetcher.get(self._config.url)
        except Disallowed as problem:
            raise SourceError(str(problem), hint=problem.hint) from problem

    async def _get(self, url: str) -> Fetched | Failure | None:
        """Return a page; None for a link that leads nowhere or where crawlers are not wanted, as many do."""
        try:
            return await self._fetcher.get(url)
        except Disallowed:
            return None
        except FetchError as problem:
            return None if problem.status in GONE else failure_of(redact_url(url), problem)

    def _take(
        self,
        reader: PageReader,
        frontier: Frontier,
        depth: int,
        fetched: Fetched | Failure | None,
        links: Links | None,
        host: str,
    ) -> Iterator[Item | Failure]:
        """Yield the document of a page, and queue its links."""
        if fetched is None:
            return
        if isinstance(fetched, Failure):
            frontier.complete = False
            yield fetched
            return
        url = canonical_url(fetched.url)
        if urlsplit(url).netloc != host or not (depth == 0 or self._wants(url)):
            return  # a redirect out of what is wanted
        if url not in frontier.read and not (links and self._stands_for(links, url, frontier, depth, host)):
            frontier.read.add(url)
            yield reader.item(url, fetched)
        if links and depth < self._config.max_depth:
            frontier.complete = frontier.complete and not links.cut
            for link in links.pages(host):
                if self._wants(link):
                    frontier.add(link, depth + 1)

    def _stands_for(self, links: Links, url: str, frontier: Frontier, depth: int, host: str) -> bool:
        """Return whether another page is read instead of this one: the one it calls canonical, if there is one."""
        proper = links.canonical if self._config.canonical else ""
        if not proper or proper == url or url in frontier.as_they_are:
            return False
        if urlsplit(proper).netloc != host or not self._wants(proper):
            return False
        frontier.add(proper, depth)
        if proper in frontier.pending:
            frontier.aside.setdefault(proper, []).append(url)
            return True
        # Seen and yet neither waiting nor read: it led nowhere, or back to here.
        return proper in frontier.read

    def _wants(self, url: str) -> bool:
        return matches_path(url, self._config.include, self._config.exclude)


async def _links(fetched: Fetched | Failure | None) -> Links | None:
    """Return the links of a page, read in a thread: a page that is all links takes a while."""
    if not isinstance(fetched, Fetched) or media_type(fetched) not in _HTML:
        return None
    return await asyncio.to_thread(Links, fetched)


class Links:
    """The links of one page; `cut` when there are more than anybody would follow."""

    def __init__(self, fetched: Fetched) -> None:
        from selectolax.lexbor import LexborHTMLParser

        markup = fetched.content[:MAX_LOOKED_AT].decode("utf-8", "replace")
        tags = [tag[0] for tag in islice(_TAG.finditer(markup), MAX_TAGS + 1)]
        self._tree = LexborHTMLParser("</a>".join(tags[:MAX_TAGS]))
        bases = self._hrefs("base")
        self._base = fetched.url
        self._base = (self._absolute(bases[0]) if bases else "") or fetched.url
        hrefs = dict.fromkeys((*self._hrefs("a"), *self._hrefs("area")))
        self._links = list(hrefs)[:MAX_LINKS]
        self.cut = len(hrefs) > MAX_LINKS or len(tags) > MAX_TAGS or len(fetched.content) > MAX_LOOKED_AT

    @property
    def canonical(self) -> str:
        """Return the page that this one names as the proper one; empty when it names none."""
        return next((self._absolute(href) for href in self._hrefs('link[rel="canonical" i]')), "")

    def pages(self, host: str) -> Iterator[str]:
        """Yield addresses on the same host that may be pages."""
        for href in self._links:
            parts = urlsplit(address := self._absolute(href))
            name = parts.path.rsplit("/", 1)[-1]
            if parts.netloc == host and not _NO_PAGE.fullmatch(name[name.rfind(".") :]):
                yield address

    def _hrefs(self, selector: str) -> list[str]:
        found = (node.attributes.get("href") or "" for node in self._tree.css(selector))
        return [href.strip() for href in found if 0 < len(href) <= MAX_HREF]

    def _absolute(self, href: str) -> str:
        return canonical_link(href, self._base)
