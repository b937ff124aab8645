"""Web pages that are named one by one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from pydantic import Field

from ragstone.core.types import Failure, Item, Json, Page
from ragstone.fetch.polite import PoliteFetcher
from ragstone.fetch.urls import redact_url
from ragstone.ingest.sources.config import SourceContext
from ragstone.ingest.sources.web.pages import PageReader, WebAddress
from ragstone.settings.base import SettingsModel

PAGE_ITEMS = 16


class WebConfig(SettingsModel):
    """Which pages are read."""

    urls: Annotated[tuple[WebAddress, ...], Field(min_length=1, max_length=10_000)]


class WebSource:
    """Reads the pages of a list. Somebody named each of them, so no robots.txt is asked; hosts still get time."""

    def __init__(self, config: WebConfig, name: str, context: SourceContext) -> None:
        self._urls = tuple(dict.fromkeys(config.urls))
        self._name = name
        self._fetcher = PoliteFetcher(context.fetcher, robots=False)

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield the pages that have changed; those that are gone, and those no longer in the list, are removed."""
        reader = PageReader(self._name, self._fetcher, cursor)
        reader.keep_only(frozenset(self._urls))
        known = frozenset((cursor or {}).get("pages") or {})
        gone: set[str] = set()
        for start in range(0, len(self._urls), PAGE_ITEMS):
            entries: list[Item | Failure] = []
            missing: list[str] = []
            for url in self._urls[start : start + PAGE_ITEMS]:
                reading = await reader.read(url)
                if reading.entry:
                    entries.append(reading.entry)
                if reading.gone and url in known:
                    missing.append(url)
                elif reading.gone:
                    entries.append(Failure(url, "not_found", f"there is no page at {redact_url(url)}"))
                    gone.add(url)
            gone.update(missing)
            last = start + PAGE_ITEMS >= len(self._urls)
            listed = frozenset(self._urls) - gone if last else None
            yield Page(tuple(entries), reader.cursor, tuple(missing), listed)

    async def close(self) -> None:
        """The fetcher is the operator's: nothing to close."""
