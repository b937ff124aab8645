"""Crawl politely: robots.txt and a pause between requests to a host."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragstone.core.errors import AddressRefused, FetchError
from ragstone.fetch.calls import Sleep
from ragstone.fetch.exchange import Fetched
from ragstone.fetch.fetcher import Fetcher
from ragstone.fetch.urls import parse_url, redact_url

MANY = 1000


class Pace:
    """Gives every caller a turn of its own, each some seconds after the one before at the same host."""

    def __init__(
        self, seconds: float, *, wait: Sleep = asyncio.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._wait = wait
        self._clock = clock
        self._free_at: dict[str, float] = {}

    async def wait_turn(self, host: str, seconds: float = 0.0) -> None:
        """Wait for a turn at the host; `seconds` asks for more time after it than usual."""
        now = self._clock()
        at = max(now, self._free_at.get(host, now))
        # Taken before waiting, so that the next caller queues behind.
        self._free_at[host] = at + max(self._seconds, seconds)
        if len(self._free_at) > MANY:
            self._free_at = {name: free for name, free in self._free_at.items() if free > now}
        if at > now:
            await self._wait(at - now)


MAX_BYTES = 500 * 1024
KEPT_BYTES = 2 * MAX_BYTES
"""The memory for robots files: parsed, a hostile one takes eighty times its size."""
KEPT_SITES = 1000
LONGEST_DELAY = 60.0
"""A site that asks for more is visited once a minute, so that no crawl lasts for ever."""
_AGENT = re.compile(r"\s*user[- ]?agent\s*[:\s]\s*([^#\s]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one site for one crawler."""

    agent: str
    parsed: Any = None
    """None where there are no rules."""
    delay: float = 0.0
    sitemaps: tuple[str, ...] = field(default=())
    size: int = 0
    """The length of the file."""

    def allow(self, url: str) -> bool:
        """Return whether the page may be fetched."""
        return self.parsed is None or bool(self.parsed.can_fetch(url, self.agent))


class Robots:
    """Reads each site's robots.txt once, and again after many other sites."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._agent = re.split(r"[/\s]", fetcher.settings.user_agent.strip() or "ragstone", maxsplit=1)[0].lower()
        self._known: OrderedDict[str, Rules] = OrderedDict()

    async def rules(self, url: str) -> Rules:
        """Return the rules of a page's site.

        No file means no rules. Raises `FetchError` when there may be one and it cannot be read: until it can,
        nothing of the site may be fetched, and a caller must not take that for an empty site.
        """
        site = parse_url(url).copy_with(raw_path=b"/robots.txt")
        place = str(site)
        rules = self._known.get(place) or await self._read(place)
        self._known[place] = rules
        self._known.move_to_end(place)
        self._forget()
        return rules

    def _forget(self) -> None:
        """Drop the sites that were not asked about for longest."""
        size = sum(rules.size for rules in self._known.values())
        while len(self._known) > KEPT_SITES or size > KEPT_BYTES:
            _, oldest = self._known.popitem(last=False)
            size -= oldest.size

    async def _read(self, place: str) -> Rules:
        try:
            answer = await self._fetcher.get(place, max_bytes=MAX_BYTES)
        except AddressRefused:
            raise
        except FetchError as problem:
            # A host that limits requests has not said that it has no rules.
            if 400 <= problem.status < 500 and problem.status != 429:
                return Rules(self._agent)
            raise FetchError(
                f"{redact_url(place)} cannot be read, so nothing of this site is fetched: {problem}",
                hint="try again later, or set fetch.robots to false",
                status=problem.status,
            ) from problem
        # Half a megabyte of rules takes the parser most of a second.
        return await asyncio.to_thread(read_rules, answer.content.decode("utf-8", "replace"), self._agent)


def read_rules(text: str, agent: str) -> Rules:
    """Parse a robots.txt for one crawler."""
    from protego import Protego

    parsed = Protego.parse(_merge_other_agents(text.removeprefix("\ufeff"), agent))
    delay = parsed.crawl_delay(agent) or 0.0
    return Rules(agent, parsed, min(delay, LONGEST_DELAY), tuple(parsed.sitemaps), len(text))


def _merge_other_agents(text: str, agent: str) -> str:
    """Return the file with all other crawlers under one name."""
    # The parser keeps every rule once for each name of its group, and a hostile file has thousands of both.
    lines = []
    for line in text.splitlines():
        named = _AGENT.match(line)
        if named and named[1].lower() not in ("*", agent):
            line = "User-agent: somebody-else"
        lines.append(line)
    return "\n".join(lines)


class Disallowed(FetchError):
    """The site's robots.txt asks not to fetch this page."""

    code = "robots_disallow"
    retryable = False


class PoliteFetcher:
    """Fetches pages that the engine found by itself. Pages that a person named need no leave: `robots=False`."""

    def __init__(self, fetcher: Fetcher, *, robots: bool = True, seconds: float | None = None) -> None:
        settings = fetcher.settings
        self._fetcher = fetcher
        self._pace = Pace(settings.seconds_per_host if seconds is None else seconds, wait=fetcher.wait)
        self._robots = Robots(fetcher) if robots and settings.robots else None

    async def get(
        self, url: str, *, headers: Mapping[str, str] | None = None, params: Mapping[str, str | int] | None = None
    ) -> Fetched:
        """Fetch a page when it is this caller's turn. Raises `Disallowed` where robots.txt says so."""
        delay = 0.0
        if self._robots:
            rules = await self._robots.rules(url)
            if not rules.allow(url):
                raise Disallowed(
                    f"the robots.txt of {parse_url(url).host} asks not to fetch {redact_url(url)}",
                    hint="leave the page out, or ask its owner",
                )
            delay = rules.delay
        await self._pace.wait_turn(parse_url(url).host, delay)
        return await self._fetcher.get(url, headers=headers, params=params)
