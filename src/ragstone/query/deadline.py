"""How long a search waits for what it reads, and what it does when that does not come back."""

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
"""How many things are remembered to have answered."""


class Warm:
    """Remembers who has answered once: the first answer may take longer, a file or an index has to be opened for it."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Expect it to answer as fast as ever from now on."""
        if len(self._names) >= MOST_WARM:
            self._names.clear()
        self._names.add(name)


class FirstReads:
    """What is read before a search can begin: there is no result without it, so giving it up is an error."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._warm = Warm()

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
async def limited(record: Recorder, stage: str, seconds: float) -> AsyncIterator[None]:
    """Leave a stage undone whose time is over or whose store cannot be read now; `degraded` says which and why."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        reason = "out of time"
    except StoreBusy as error:
        reason = str(error)
    else:
        return
    logger.warning("a search goes on without %s: %s", stage, reason)
    record.degrade(f"{stage}: {reason}")
