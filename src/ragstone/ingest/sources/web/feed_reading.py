"""RSS and Atom: checked as XML first, then read by feedparser."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ragstone.core.errors import SourceError
from ragstone.core.ids import content_hash
from ragstone.fetch.exchange import Fetched
from ragstone.fetch.urls import canonical_link, redact_url
from ragstone.ingest.parsers.draft import one_line
from ragstone.ingest.parsers.sandbox.pool import start_isolated
from ragstone.ingest.parsers.text.decoding import decode
from ragstone.ingest.sources.web.pages import CHARSET, declared_charset
from ragstone.ingest.sources.web.safe_xml import BrokenXml, read_records
from ragstone.settings.tree import LimitSettings

_CHILD = "ragstone.ingest.parsers.web.feed"


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


MAX_BYTES = 10 * 1024 * 1024
MAX_TAGS = 200_000
MAX_ENTRIES = 5000
"""More than these cost feedparser tens of seconds."""
_DECLARATION = re.compile(r"<\?xml[^>]{0,300}\?>")
_ENCODING = re.compile(rb"\s*<\?xml[^>]{0,300}?encoding\s*=\s*[\"']([\w.:-]{2,40})")
_ENTRY = re.compile(r"<(?:\w+:)?(?:item|entry)[\s>]", re.IGNORECASE)
_ROOT = re.compile(r"<\w")


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One article of a feed."""

    id: str
    """What the feed calls it; empty when it says nothing."""
    link: str
    title: str
    content: str
    is_html: bool
    author: str
    published: datetime | None

    @property
    def fingerprint(self) -> str:
        """Changes with anything that a reader would see."""
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
    return await asyncio.to_thread(_feed, said, fetched.url, broken)


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
    """Refuse what reaches outside or is too much; whether the XML is broken."""
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


def _feed(said: Mapping[str, Any], base: str, broken: bool) -> Feed:
    return Feed(one_line(said["title"]), tuple(_entry(entry, base) for entry in said["entries"]), broken)


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
