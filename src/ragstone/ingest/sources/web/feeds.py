"""Articles of RSS and Atom feeds."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from ragstone.core.clock import canonical
from ragstone.core.errors import FetchError, RagstoneError
from ragstone.core.ids import content_hash
from ragstone.core.types import Failure, Item, Json, Page, failure_of
from ragstone.fetch.calls import is_transient_status
from ragstone.fetch.polite import PoliteFetcher
from ragstone.fetch.urls import redact_url
from ragstone.ingest.sources.config import SourceContext
from ragstone.ingest.sources.web.feed_reading import Feed, FeedEntry, read_feed
from ragstone.ingest.sources.web.pages import WebAddress, conditions, in_known_charset, media_type
from ragstone.settings.base import SettingsModel


class FeedsConfig(SettingsModel):
    """Which feeds are read."""

    urls: Annotated[tuple[WebAddress, ...], Field(min_length=1, max_length=1000)]
    full_text: bool = False
    """Fetch the page of each article, for feeds that carry only its beginning."""
    max_entries: int = Field(default=500, ge=1, le=5000)
    """Of each feed, the first so many."""


@dataclass(frozen=True, slots=True)
class Article:
    """The documents of one entry; `settled` when it need not be looked at again."""

    entries: tuple[Item | Failure, ...]
    settled: bool = True


@dataclass(frozen=True, slots=True)
class ArticleNames:
    """The external ids of the articles of one feed.

    An id that a feed says holds for the whole world is taken at its word only while no other feed stands beside it:
    else any feed could write over the articles of the others.
    """

    feed_url: str
    alone: bool
    had: frozenset[str]
    """Names that this feed's articles have already: they keep them."""

    def of(self, entry: FeedEntry) -> str:
        """Return the article's id, its link or its content, within its feed where that is needed."""
        wide = entry.id if ":" in entry.id else "" if entry.id else entry.link
        narrow = f"{self.feed_url}#{entry.id or entry.link or content_hash(entry.title + entry.content)[:32]}"
        names = (wide, narrow) if self.alone else (narrow, wide)
        return next((name for name in names if name and name in self.had), "") or names[0] or narrow


class FeedsSource:
    """Reads several feeds. Articles that have left their feed stay: feeds carry only the newest."""

    def __init__(self, config: FeedsConfig, name: str, context: SourceContext) -> None:
        self._config = config
        self._name = name
        self._feeds = PoliteFetcher(context.fetcher, robots=False)
        self._pages = PoliteFetcher(context.fetcher)
        self._limits = context.limits

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield articles that are new or changed, feed by feed. Raises when no feed can be read."""
        known: dict[str, Any] = dict((cursor or {}).get("feeds") or {})
        urls = tuple(dict.fromkeys(self._config.urls))
        known = {url: memory for url, memory in known.items() if url in urls}
        failures: list[Failure] = []
        problem: RagstoneError | None = None
        for url in urls:
            try:
                entries, known[url] = await self._read(url, known)
            except RagstoneError as error:
                problem = problem or error
                failures.append(failure_of(redact_url(url), error))
                # It may have taken minutes: a run that says nothing for long is taken for hung.
                yield Page((), {"feeds": dict(known)})
                continue
            if entries:
                yield Page(entries, {"feeds": dict(known)})
        if problem and len(failures) == len(urls):
            raise problem
        yield Page(tuple(failures), {"feeds": known})

    async def close(self) -> None:
        """The fetcher is the operator's: nothing to close."""

    async def _read(self, url: str, known: Mapping[str, Any]) -> tuple[tuple[Item | Failure, ...], Json]:
        memory: Mapping[str, Any] = known.get(url) or {}
        headers = conditions(memory.get("etag"), memory.get("modified"))
        fetched = await self._feeds.get(url, headers=headers)
        if fetched.status == 304:
            return (), dict(memory)
        feed = await read_feed(fetched, self._limits)
        before: Mapping[str, str] = memory.get("entries") or {}
        names = self._names(url, known)
        seen: dict[str, str] = {}
        found: list[Item | Failure] = []
        settled = True
        for entry in feed.entries[: self._config.max_entries]:
            external_id = names.of(entry)
            if external_id in seen:
                continue
            if before.get(external_id) != entry.fingerprint:
                article = await self._article(entry, external_id, feed, url)
                found += article.entries
                if not article.settled:
                    settled = False
                    continue
            seen[external_id] = entry.fingerprint
        if feed.broken:
            found.append(
                Failure(
                    redact_url(url), "broken_xml", f"{redact_url(url)} is broken XML: {len(seen)} entries were read"
                )
            )
        # Were the feed's tag kept while an article is still missing, it would not be fetched again.
        tags = {"etag": fetched.headers.get("etag"), "modified": fetched.headers.get("last-modified")}
        kept = {name: value for name, value in tags.items() if value and settled}
        return tuple(found), {**kept, "entries": seen}

    def _names(self, url: str, known: Mapping[str, Any]) -> ArticleNames:
        urls = tuple(dict.fromkeys(self._config.urls))
        had: Mapping[str, str] = (known.get(url) or {}).get("entries") or {}
        earlier = [(known.get(other) or {}).get("entries") or {} for other in urls[: urls.index(url)]]
        return ArticleNames(
            url,
            alone=len(urls) == 1,
            had=frozenset(name for name in had if not any(name in names for names in earlier)),
        )

    async def _article(self, entry: FeedEntry, external_id: str, feed: Feed, feed_url: str) -> Article:
        item = self._item(entry, external_id, feed, feed_url)
        if not (self._config.full_text and entry.link):
            return Article((item,))
        try:
            page = await self._pages.get(entry.link)
        except FetchError as problem:
            lost = failure_of(redact_url(entry.link), problem, f"{problem}; what the feed says of it was taken")
            return Article((item, lost), settled=_is_final(problem))
        full = replace(
            item,
            uri=page.url,
            content=in_known_charset(page),
            metadata={**item.metadata, "url": page.url},
            media_type=media_type(page),
        )
        return Article((full,))

    def _item(self, entry: FeedEntry, external_id: str, feed: Feed, feed_url: str) -> Item:
        uri = entry.link or f"{feed_url}#{content_hash(external_id)[:16]}"
        metadata: dict[str, Any] = {"source_type": "rss", "url": uri, "source": feed.title or feed_url}
        if entry.published:
            metadata["published_date"] = canonical(entry.published)
        if entry.author:
            metadata["author"] = entry.author
        return Item(
            source=self._name,
            external_id=external_id,
            uri=uri,
            content=as_page(entry.title, entry.content) if entry.is_html else entry.content or entry.title,
            title=entry.title,
            metadata=metadata,
            modified_at=entry.published,
            media_type="text/html" if entry.is_html else "text/plain",
        )


def _is_final(problem: FetchError) -> bool:
    return not problem.retryable or (400 <= problem.status < 500 and not is_transient_status(problem.status))


def as_page(title: str, body: str) -> bytes:
    """Return a piece of HTML as the page it would be, so that it is known for HTML whatever its address ends in."""
    heading = html.escape(title)
    head = f'<meta charset="utf-8"><title>{heading}</title>'
    text = f"<!doctype html><html><head>{head}</head><body><h1>{heading}</h1>\n{body}</body></html>"
    return text.encode("utf-8", "replace")
