"""Fetching as a guest: robots.txt is asked first, and a host gets time between two requests."""

from __future__ import annotations

from collections.abc import Mapping

from ragstone.core.errors import FetchError
from ragstone.fetch.fetcher import Fetched, Fetcher
from ragstone.fetch.pace import Pace
from ragstone.fetch.robots import Robots
from ragstone.fetch.urls import parse_url, shown


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
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str | int] | None = None,
    ) -> Fetched:
        """Like the fetcher's own, when it is this caller's turn. Raises `Disallowed` where robots.txt says so."""
        delay = 0.0
        if self._robots:
            rules = await self._robots.rules(url)
            if not rules.allow(url):
                raise Disallowed(
                    f"the robots.txt of {parse_url(url).host} asks not to fetch {shown(url)}",
                    hint="leave the page out, or ask whoever runs the site",
                )
            delay = rules.delay
        await self._pace.turn(parse_url(url).host, delay)
        return await self._fetcher.get(url, headers=headers, params=params)
