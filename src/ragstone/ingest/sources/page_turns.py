"""When what was found so far becomes a page: a slow site must not be taken for one that gives nothing."""

from __future__ import annotations

import time

PAGE_ITEMS = 16
PAGE_SECONDS = 60.0
"""Far below what a sync waits for a page, since one request may take as long again."""


class PageTurn:
    """Counts from the moment it is made."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def due(self, entries: int) -> bool:
        """Whether there is enough for a page, or enough time has passed: then even an empty one is a sign of life."""
        return entries >= PAGE_ITEMS or time.monotonic() - self._begun >= PAGE_SECONDS
