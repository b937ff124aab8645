"""Pages of a source: how far a run has come, and cursors for the next one."""

from __future__ import annotations

import time

from ragstone.core.errors import SourceError

PAGE_ITEMS = 16
PAGE_SECONDS = 60.0
"""Far below what a sync waits for a page, since one request may take as long again."""


class PageTurn:
    """Counts from the moment it is made."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def due(self, entries: int) -> bool:
        """Return whether a page is full or due by time; an empty one then shows that the source is alive."""
        return entries >= PAGE_ITEMS or time.monotonic() - self._begun >= PAGE_SECONDS


MAX_PAGES = 20_000


class PageTokens:
    """The tokens of one listing, each of which leads on once."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._seen: set[str] = set()

    def follow(self, token: str) -> str:
        """Return the token of the next page, empty behind the last. Raises `SourceError` for an endless listing."""
        if not token:
            return ""
        if token in self._seen:
            raise SourceError(f"{self._who} lists in a circle: a page leads back to one before it", hint=_HINT)
        if len(self._seen) == MAX_PAGES:
            raise SourceError(f"{self._who} lists more than {MAX_PAGES:,} pages", hint=_HINT)
        self._seen.add(token)
        return token


_HINT = "check the address of the service, or narrow down what is asked for"
