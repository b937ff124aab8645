"""The pages that a site's sitemap lists (sitemaps.org, plain or gzipped, with an index or without)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from pydantic import Field

from ragstone.core.errors import AddressRefused, FetchError, RagstoneError, SourceError
from ragstone.core.types import Failure, Item, Json, Page, failure_of
from ragstone.fetch.exchange import BodyTooLarge, Damaged, unzip
from ragstone.fetch.polite import PoliteFetcher
from ragstone.fetch.urls import canonical_url, redact_url
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.paging import PageTurn
from ragstone.ingest.sources.web.pages import PageReader, WebAddress, Words
from ragstone.ingest.sources.web.safe_xml import read_records
from ragstone.settings.base import SettingsModel

MAX_SITEMAPS = 100
MAX_BYTES = 50 * 1024 * 1024
MAX_ENTRIES = 50_000
"""The protocol allows no larger sitemaps, and none with more entries."""


class SitemapConfig(SettingsModel):
    """The sitemap to read, and a selection of its pages."""

    url: WebAddress
    """The address of the sitemap itself, such as https://example.com/sitemap.xml."""
    include: Words = ()
    """Patterns over a page's path, such as `/docs/*`; all pages when there is none."""
    exclude: Words = ()
    max_pages: int = Field(default=1000, ge=1, le=10_000)


@dataclass
class SitemapListing:
    """The pages that were listed so far, each with its `lastmod`."""

    pages: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    cut: bool = False


class SitemapSource(StatelessSource):
    """Reads the pages of one host that its sitemap lists. The protocol lets a sitemap speak for its own host only."""

    def __init__(self, config: SitemapConfig, name: str, context: SourceContext) -> None:
        self._config = config
        self._name = name
        self._fetcher = PoliteFetcher(context.fetcher)
        self._host = _host(config.url)

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield pages that are new or have another date than last time; those no longer listed are removed."""
        listing, turn = SitemapListing(), PageTurn()
        async for _ in self._list(listing):
            if turn.due(0):
                yield Page((), cursor)
                turn = PageTurn()
        reader = PageReader(self._name, self._fetcher, cursor)
        urls = frozenset(listing.pages)
        complete = not (listing.failures or listing.cut)
        if complete or listing.cut:
            # With a sitemap missing, what is known of its pages is kept until it can be read again.
            reader.keep_only(urls)
        due = [url for url, date in listing.pages.items() if not date or date != reader.lastmod(url)]
        if listing.failures:
            yield Page(tuple(listing.failures), reader.cursor)
        gone: set[str] = set()
        entries: list[Item | Failure] = []
        missing: list[str] = []
        turn = PageTurn()
        for url in due:
            reading = await reader.read(url, lastmod=listing.pages[url])
            if reading.entry:
                entries.append(reading.entry)
            if reading.gone:
                missing.append(url)
                gone.add(url)
            if turn.due(len(entries) + len(missing)) or url == due[-1]:
                yield Page(tuple(entries), reader.cursor, tuple(missing))
                entries, missing, turn = [], [], PageTurn()
        yield Page((), reader.cursor, listed=urls - gone if complete else None)

    async def _list(self, listing: SitemapListing) -> AsyncIterator[None]:
        """Read the sitemap and all that it leads to into the listing, yielding after each."""
        queue = deque([self._config.url])
        seen = {self._config.url}
        while queue:
            place = queue.popleft()
            try:
                further = await self._read(place, listing)
            except RagstoneError as problem:
                if place == self._config.url:
                    raise
                listing.failures.append(failure_of(redact_url(place), problem))
                further = []
            for address in further:
                if address not in seen and len(seen) < MAX_SITEMAPS:
                    seen.add(address)
                    queue.append(address)
                elif address not in seen:
                    listing.cut = True
            yield
        if listing.cut:
            most = self._config.max_pages
            found = (
                f"{redact_url(self._config.url)} lists more than {most} pages or {MAX_SITEMAPS} sitemaps, "
                f"or one of them has more than {MAX_ENTRIES:,} entries"
            )
            listing.failures.append(Failure(redact_url(self._config.url), "too_large", found))

    async def _read(self, place: str, listing: SitemapListing) -> list[str]:
        """Take the pages of one sitemap down, and return the sitemaps that it leads to."""
        fetched = await self._fetcher.get(place)
        # In a thread: fifty thousand addresses take seconds.
        return await asyncio.to_thread(self._take_down, fetched.content, place, listing)

    def _take_down(self, content: bytes, place: str, listing: SitemapListing) -> list[str]:
        records = read_records(_unpack(content, place), redact_url(place), frozenset({"url", "sitemap"}), MAX_ENTRIES)
        listing.cut = listing.cut or records.cut
        further = []
        for kind, texts in records.found:
            try:
                address = canonical_url(texts.get("loc", ""), place)
            except AddressRefused:
                continue
            if kind == "sitemap":
                further.append(address)
            elif self._wants(address) and address not in listing.pages:
                if len(listing.pages) == self._config.max_pages:
                    listing.cut = True
                    break
                listing.pages[address] = texts.get("lastmod", "")[:40]
        return further

    def _wants(self, address: str) -> bool:
        return _host(address) == self._host and matches_path(address, self._config.include, self._config.exclude)


def matches_path(address: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Return whether a page's path fits a pattern of `include`, if there are any, and none of `exclude`."""
    path = urlsplit(address).path
    return (not include or any(fnmatchcase(path, pattern) for pattern in include)) and not any(
        fnmatchcase(path, pattern) for pattern in exclude
    )


def _host(address: str) -> str:
    # Sites answer with and without the prefix, and their sitemaps mix both.
    return urlsplit(address).netloc.removeprefix("www.")


def _unpack(content: bytes, place: str) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        if len(content) > MAX_BYTES:
            raise _too_large(place, "has")
        return content
    try:
        return unzip(content, MAX_BYTES)
    except BodyTooLarge:
        raise _too_large(place, "unpacks to") from None
    except Damaged as problem:
        raise SourceError(f"{redact_url(place)} is a damaged gzip file: {problem}") from problem


def _too_large(place: str, has: str) -> FetchError:
    return FetchError(
        f"{redact_url(place)} {has} more than {MAX_BYTES // 1024 // 1024} MB",
        hint="the protocol allows no larger sitemaps; split it",
    )
