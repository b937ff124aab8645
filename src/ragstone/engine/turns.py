"""Take turns: so much is done at once, the rest waits, and no tenant keeps the others from their turn."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ragstone.core.errors import Overloaded

SHORTEST_WAIT = 1.0
"""The seconds after which a refused caller may come back at the soonest."""


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A caller that waits."""

    turn: asyncio.Future[None]
    admitted: bool


class Turns:
    """Lets callers in, each tenant in its turn.

    A queue that is full takes from the tenant that waits with the most callers: one tenant's flood costs only itself.
    """

    def __init__(
        self,
        what: str,
        at_once: int,
        *,
        waiting: int,
        seconds: float,
        most_of_one: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`most_of_one` is the number of turns that one tenant may have while others could come."""
        self._what = what
        self._at_once = at_once
        self._most_waiting = waiting
        self._seconds = seconds
        self._most_of_one = most_of_one or at_once
        self._clock = clock
        self._running: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[_Place]] = OrderedDict()
        self._mean_seconds = 0.0

    @property
    def running(self) -> int:
        """Return the number of turns that are taken."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """Return the number of callers that wait."""
        return sum(map(len, self._queues.values()))

    @asynccontextmanager
    async def take(self, tenant: str, *, admitted: bool = False) -> AsyncIterator[float]:
        """Wait for a turn and give the seconds that this took; raise `Overloaded` when too many wait, or too long.

        What is part of something that was `admitted` before is not refused for the length of the queue.
        """
        came = self._clock()
        if self._queues.get(tenant) or not self._has_room(tenant):
            await self._wait(tenant, admitted)
        else:
            self._running[tenant] += 1
        began = self._clock()
        try:
            yield began - came
        finally:
            self._mean_seconds += 0.1 * (self._clock() - began - self._mean_seconds)
            self._release(tenant)

    def _has_room(self, tenant: str) -> bool:
        return self.running < self._at_once and self._running[tenant] < self._most_of_one

    async def _wait(self, tenant: str, admitted: bool) -> None:
        if not admitted:
            self._make_room(tenant)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = _Place(turn, admitted)
        self._queues.setdefault(tenant, deque()).append(place)
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._release(tenant)  # the turn came in the same moment
            else:
                self._leave(tenant, place)
            if isinstance(error, TimeoutError):
                raise self._refusal(f"no turn came within {self._seconds:g} s") from None
            raise

    def _make_room(self, tenant: str) -> None:
        """In a full queue, refuse the last caller of the tenant that has the most of them, or this one."""
        lengths = {name: sum(not place.admitted for place in queue) for name, queue in self._queues.items()}
        if sum(lengths.values()) < self._most_waiting:
            return
        longest = max(lengths, key=lengths.__getitem__, default=tenant)
        if lengths.get(longest, 0) <= lengths.get(tenant, 0) + 1:
            raise self._refusal(f"{self.waiting} others wait")
        last = next(place for place in reversed(self._queues[longest]) if not place.admitted)
        self._leave(longest, last)
        if not last.turn.done():
            last.turn.set_exception(self._refusal(f"{self.waiting} others wait"))

    def _leave(self, tenant: str, place: _Place) -> None:
        queue = self._queues.get(tenant, deque())
        if place in queue:
            queue.remove(place)
            if not queue:
                del self._queues[tenant]

    def _release(self, tenant: str) -> None:
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        while (following := next(filter(self._has_room, self._queues), None)) is not None:
            place = self._queues[following][0]
            self._queues.move_to_end(following)
            self._leave(following, place)
            if not place.turn.done():
                self._running[following] += 1
                place.turn.set_result(None)

    def _refusal(self, reason: str) -> Overloaded:
        rounds = (self.waiting + self._at_once) / self._at_once
        after = max(SHORTEST_WAIT, rounds * self._mean_seconds)
        return Overloaded(
            f"too many {self._what} at once: {reason}", hint=f"try again in {after:.0f} s", retry_after=after
        )
