"""Whose turn it is: tenants with work, one after the other."""

from __future__ import annotations

import asyncio
import time

from ragstone.core.jobs import JobKind, Queue

POLL_SECONDS = 0.2


class Rota:
    """Knows which tenants may have something to do and gives them turns, so that none waits behind another's batch."""

    def __init__(self, queue: Queue, sweep_seconds: float, only: str | None = None) -> None:
        self._queue = queue
        self._only = only
        self._sweep_seconds = sweep_seconds
        self._heard: dict[str, int] = {}
        self._due: dict[tuple[str, JobKind], float] = {}
        self._order: list[str] = []
        self._swept = float("-inf")

    async def tenants(self) -> dict[str, int]:
        """All tenants that this worker works for, with their bells."""
        bells = await self._queue.bells()
        return {name: bell for name, bell in bells.items() if self._only in (None, name)}

    async def turns(self, kind: JobKind) -> list[str]:
        """Tenants that may have work now, those that had a turn last at the end."""
        moment = time.monotonic()
        bells = await self.tenants()
        # A bell may have been missed by a crash between the commit and the ring: everyone is looked at now and then.
        everyone = moment - self._swept >= self._sweep_seconds
        if everyone:
            self._swept = moment
        for tenant, bell in bells.items():
            if everyone or self._heard.get(tenant) != bell:
                self._heard[tenant] = bell
                self._due[tenant, "document"] = self._due[tenant, "sync"] = moment
        ready = [tenant for tenant in bells if self._due.get((tenant, kind), moment) <= moment]
        place = {tenant: index for index, tenant in enumerate(self._order)}
        return sorted(ready, key=lambda tenant: place.get(tenant, -1))

    def had_turn(self, tenant: str) -> None:
        """Behind all others from now on."""
        self._order = [*(one for one in self._order if one != tenant), tenant]

    async def has_work(self, tenant: str, kind: JobKind) -> bool:
        """Whether a job or a lease is due; if not, nobody looks again before the next one is."""
        wait = await self._queue.next_due(tenant, kind)
        self._due[tenant, kind] = float("inf") if wait is None else time.monotonic() + wait
        return wait is not None and wait <= 0

    def put_off(self, tenant: str, kind: JobKind) -> None:
        """Something is wrong there: look again later."""
        self._due[tenant, kind] = time.monotonic() + self._sweep_seconds

    async def rest(self) -> None:
        """Wait a moment before looking again."""
        await asyncio.sleep(POLL_SECONDS)
