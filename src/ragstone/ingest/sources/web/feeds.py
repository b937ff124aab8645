"""Articles of RSS and Atom feeds: checked as XML first, then read by feedparser in a child."""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from ragstone.core.clock import canonical
from ragstone.core.errors import FetchError, RagstoneError, SourceError
from ragstone.core.ids import content_hash
from ragstone.core.types import Failure, Item, Json, Page, failure_of
from ragstone.fetch.calls import is_transient_status
from ragstone.fetch.exchange import Fetched
from ragstone.fetch.polite import PoliteFetcher
from ragstone.fetch.urls import canonical_link, redact_url
from ragstone.ingest.parsers.draft import one_line
from ragstone.ingest.parsers.sandbox.pool import start_isolated
from ragstone.ingest.parsers.text.text import decode
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.paging import Entries, PageTurn
from ragstone.ingest.sources.web.pages import (
    CHARSET,
    WebAddress,
    conditions,
    declared_charset,
    in_known_charset,
    media_type,
)
from ragstone.ingest.sources.web.safe_xml import BrokenXml, read_records
from ragstone.settings.base import SettingsModel
from ragstone.settings.tree import LimitSettings

_CHILD = "ragstone.ingest.parsers.web.feed"
MAX_BYTES = 10 * 1024 * 1024
MAX_TAGS = 200_000
MAX_ENTRIES = 5000
"""More than these cost feedparser tens of seconds."""
_DECLARATION = re.compile(r"<\?xml[^>]{0,300}\?>")
_ENCODING = re.compile(rb"\s*<\?xml[^>]{0,300}?encoding\s*=\s*[\"']([\w.:-]{2,40})")
_ENTRY = re.compile(r"<(?:\w+:)?(?:item|entry)[\s>]", re.IGNORECASE)
_ROOT = re.compile(r"<\w")


async def parse_apart(content: bytes, name: str, limits: LimitSettings) -> dict[str, Any]:
    """Parse a feed with feedparser in a child, within the time and the memory that a file may cost."""
    child = start_isolated(_CHILD, str(limits.parse_memory_mb), str(limits.parse_seconds), str(os.getpid()))
    try:
        # The thread also ends what it waits for, and so must run whatever becomes of this task.
        answer = await asyncio.shield(asyncio.to_thread(_ask, child, content, limits.parse_seconds))
    except asyncio.CancelledError:
        child.kill()
        raise
    if not answer:
        raise SourceError(
            f"{name} takes more time or memory to read than a file may",
            hint="it may be hostile; if it is not, raise limits.parse_seconds or limits.parse_memory_mb",
        )
    said: dict[str, Any] = json.loads(answer)
    return said


def _ask(child: subprocess.Popen[bytes], content: bytes, seconds: float) -> bytes:
    with child:
        try:
            # Twice the time, since the child ends by itself when it has used its processor time.
            answer, _ = child.communicate(content, timeout=2 * seconds)
        except subprocess.TimeoutExpired:
            return b""
        finally:
            child.kill()
    return b"" if child.returncode else answer


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One article of a feed."""

    id: str
    """Its id in the feed; empty when the feed gives none."""
    link: str
    title: str
    content: str
    is_html: bool
    author: str
    published: datetime | None

    @property
    def fingerprint(self) -> str:
        """Return a digest of everything that a reader sees."""
        parts = (self.id, self.link, self.title, self.content, self.author, str(self.published))
        return content_hash("\x1f".join(parts))[:16]


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed as it was read; `broken` when its XML is not well-formed and this is what could be had."""

    title: str
    entries: tuple[FeedEntry, ...]
    broken: bool = False


async def read_feed(fetched: Fetched, limits: LimitSettings) -> Feed:
    """Read a feed. Raises `SourceError` for one that is hostile, and for other content."""
    name = redact_url(fetched.url)
    if len(fetched.content) > MAX_BYTES:
        raise SourceError(f"{name} is larger than {MAX_BYTES // 1024 // 1024} MB", hint="ask for a shorter feed")
    text = await asyncio.to_thread(_text, fetched, name)
    broken = await asyncio.to_thread(_check, text, name)
    # With a line in front, feedparser does not look for an encoding where the feed may have written anything.
    said = await parse_apart(b"\n" + text.encode(), name, limits)
    if not said["version"] and not said["entries"]:
        raise SourceError(f"{name} is no RSS or Atom feed", hint="give the address of the feed, not of the page")
    entries = await asyncio.to_thread(lambda: tuple(_entry(entry, fetched.url) for entry in said["entries"]))
    return Feed(one_line(said["title"]), entries, broken)


def _text(fetched: Fetched, name: str) -> str:
    """Return the feed's characters, without its declaration: its encoding is settled here and not guessed again.

    What stands before the root is put on one line, since feedparser takes every line there together with all white
    space behind it.
    """
    declared = _ENCODING.match(fetched.content[:400])
    stated = declared[1].decode("ascii") if declared else ""
    charset = declared_charset(fetched) or (stated if CHARSET.fullmatch(stated) else "")
    text = decode(fetched.content, name, declared=charset).text
    root = _ROOT.search(text)
    prolog, rest = (text[: root.start()], text[root.start() :]) if root else (text, "")
    return " ".join(_DECLARATION.sub("", prolog.removeprefix("\ufeff"), count=1).split()) + rest


def _check(text: str, name: str) -> bool:
    """Refuse a feed that reaches outside or is too large, and return whether its XML is broken."""
    if text.count("<") > MAX_TAGS or sum(1 for _ in _ENTRY.finditer(text)) > MAX_ENTRIES:
        raise SourceError(
            f"{name} has more than {MAX_ENTRIES:,} entries or {MAX_TAGS:,} tags", hint="ask for a shorter feed"
        )
    root = _ROOT.search(text)
    prolog = text[: root.start()].lower() if root else text.lower()
    if "<!doctype" in prolog or "<!entity" in prolog:
        # Said here as well, since feedparser reads these even where the XML is broken.
        raise SourceError(
            f"{name} declares a document type or entities", hint="feeds need none; ask its publisher for one without"
        )
    try:
        read_records(text.encode(), name)
    except BrokenXml:
        return True
    return False


def _entry(entry: Mapping[str, Any], base: str) -> FeedEntry:
    identity, link = entry["id"].strip(), entry["link"].strip()
    if link == identity and "://" not in link:
        link = ""  # feedparser gives the id where there is no link
    return FeedEntry(
        id=identity[:1000],
        link=canonical_link(link, base) if link else "",
        title=one_line(entry["title"]),
        content=entry["content"],
        is_html=entry["is_html"],
        author=one_line(entry["author"])[:300],
        published=_moment(entry["moments"]),
    )


def _moment(moments: Iterable[list[int]]) -> datetime | None:
    for year, month, day, hour, minute, second in moments:
        with suppress(ValueError):
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    return None


class FeedsConfig(SettingsModel):
    """The feeds to read."""

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


class FeedsSource(StatelessSource):
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
        turn = PageTurn()
        for url in urls:
            try:
                async for entries, memory in self._read(url, known):
                    known[url] = memory
                    if entries or turn.due(0):
                        yield Page(entries, {"feeds": dict(known)})
                        turn = PageTurn()
            except RagstoneError as error:
                problem = problem or error
                failures.append(failure_of(redact_url(url), error))
                # It may have taken minutes: a run that says nothing for long is taken for hung.
                yield Page((), {"feeds": dict(known)})
                turn = PageTurn()
        if problem and len(failures) == len(urls):
            raise problem
        yield Page(tuple(failures), {"feeds": known})

    async def _read(self, url: str, known: Mapping[str, Any]) -> AsyncIterator[tuple[Entries, Json]]:
        """Yield what is new in a feed, and what to remember of it so far: a run may break off at any of them."""
        turn = PageTurn()
        memory: Mapping[str, Any] = known.get(url) or {}
        headers = conditions(memory.get("etag"), memory.get("modified"))
        fetched = await self._feeds.get(url, headers=headers)
        if fetched.status == 304:
            yield (), dict(memory)
            return
        feed = await read_feed(fetched, self._limits)
        before: dict[str, str] = dict(memory.get("entries") or {})
        names = self._names(url, known)
        seen: dict[str, str] = {}
        found: list[Item | Failure] = []
        settled = True
        for entry in feed.entries[: self._config.max_entries]:
            external_id = names.of(entry)
            if external_id in seen:
                continue
            if before.pop(external_id, "") == entry.fingerprint:
                seen[external_id] = entry.fingerprint
                continue
            article = await self._article(entry, external_id, feed, url)
            found += article.entries
            settled = settled and article.settled
            if article.settled:
                seen[external_id] = entry.fingerprint
            if turn.due(0):
                # Without the feed's tags, or the rest of it would not be fetched any more.
                yield tuple(found), {"entries": before | seen}
                found, turn = [], PageTurn()
        if feed.broken:
            found.append(
                Failure(
                    redact_url(url), "broken_xml", f"{redact_url(url)} is broken XML: {len(seen)} entries were read"
                )
            )
        # Were the feed's tag kept while an article is still missing, it would not be fetched again.
        tags = {"etag": fetched.headers.get("etag"), "modified": fetched.headers.get("last-modified")}
        kept = {name: value for name, value in tags.items() if value and settled}
        yield tuple(found), {**kept, "entries": seen}

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
            refused = 400 <= problem.status < 500 and not is_transient_status(problem.status)
            return Article((item, lost), settled=refused or not problem.retryable)
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


def as_page(title: str, body: str) -> bytes:
    """Return a piece of HTML as the page it would be, so that it is known for HTML whatever its address ends in."""
    heading = html.escape(title)
    head = f'<meta charset="utf-8"><title>{heading}</title>'
    text = f"<!doctype html><html><head>{head}</head><body><h1>{heading}</h1>\n{body}</body></html>"
    return text.encode("utf-8", "replace")
