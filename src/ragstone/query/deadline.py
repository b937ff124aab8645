"""Deadlines of the reads of a search: an error for those it cannot do without, a note for the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ragstone.core.errors import StoreBusy
from ragstone.core.remedies import Action, Remedy
from ragstone.query.context import COLD_TIMES, Recorder

logger = logging.getLogger(__name__)
MOST_WARM = 10_000


class WarmNames:
    """Names of stores and models that answered once; the first answer may take longer, to open a file or an index."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Remember that it has answered."""
        if len(self._names) >= MOST_WARM:
            self._names.clear()
        self._names.add(name)


class FirstReads:
    """Limits the reads before a search begins: there is no result without them, so a timeout is an error."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._warm = WarmNames()

    @asynccontextmanager
    async def within(self, tenant: str, what: str) -> AsyncIterator[None]:
        """Raise `StoreBusy` when the block does not end in time; the first of its kind has longer."""
        name = f"{what} {tenant}"
        seconds = self._seconds if name in self._warm else COLD_TIMES * self._seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StoreBusy(
                f"the {what} of tenant '{tenant}' could not be read within {seconds:g} s",
                remedy=Remedy(Action.CHECK_STORES),
            ) from error
        self._warm.add(name)


@asynccontextmanager
async def degrade_on_timeout(record: Recorder, stage: str, seconds: float) -> AsyncIterator[None]:
    """End a stage that is out of time or whose store is busy, and name it in `degraded`."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        reason = "out of time"
    except StoreBusy as error:
        reason = str(error)
    else:
        return
    logger.warning("searching without %s: %s", stage, reason)
    record.degrade(f"{stage}: {reason}")
