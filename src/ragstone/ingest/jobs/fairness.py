"""Whose turn it is: tenants with work, one after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import NamedTuple

from ragstone.core.jobs import JobKind, Lane, Queue

POLL_SECONDS = 0.2
FRESH_SECONDS = POLL_SECONDS / 2
"""How long what the bells said is good for all who ask."""


class WorkerSlot(NamedTuple):
    """What one pair of hands takes up."""

    kind: JobKind
    lane: Lane


class TenantScheduler:
    """Knows which tenants may have something to do and gives them turns, so that none waits behind another's batch."""

    def __init__(self, queue: Queue, sweep_seconds: float, attempts: int, only: str | None = None) -> None:
        self._queue = queue
        self._attempts = attempts
        self._only = only
        self._sweep_seconds = sweep_seconds
        self._heard: dict[str, int] = {}
        self._bells: tuple[float, Mapping[str, int]] = (float("-inf"), {})
        self._due: dict[str, dict[WorkerSlot, float]] = {}
        self._order: list[str] = []
        self._swept = float("-inf")

    async def tenants(self) -> dict[str, int]:
        """All tenants that this worker works for, with their bells."""
        bells = await self._queue.bells()
        return {name: bell for name, bell in bells.items() if self._only in (None, name)}

    async def next_tenants(self, slot: WorkerSlot) -> list[str]:
        """Tenants that may have work now, those that had a turn last at the end."""
        if time.monotonic() - self._bells[0] >= FRESH_SECONDS:
            self._bells = time.monotonic(), await self.tenants()
        moment, bells = time.monotonic(), self._bells[1]
        # A bell may have been missed by a crash between the commit and the ring: everyone is looked at now and then.
        everyone = moment - self._swept >= self._sweep_seconds
        if everyone:
            self._swept = moment
        for tenant, bell in bells.items():
            if everyone or self._heard.get(tenant) != bell:
                self._heard[tenant] = bell
                self._due[tenant] = {}
        ready = [tenant for tenant in bells if self._due[tenant].get(slot, moment) <= moment]
        place = {tenant: index for index, tenant in enumerate(self._order)}
        return sorted(ready, key=lambda tenant: place.get(tenant, -1))

    def note_turn(self, tenant: str) -> None:
        """Behind all others from now on."""
        self._order = [*(one for one in self._order if one != tenant), tenant]

    async def has_work(self, tenant: str, slot: WorkerSlot) -> bool:
        """Whether a job or a lease is due; if not, nobody looks again before the next one is."""
        due = self._due[tenant]  # of before the look: a bell that rings meanwhile begins another
        wait = await self._queue.next_due(tenant, self._attempts, slot.kind, slot.lane)
        due[slot] = float("inf") if wait is None else time.monotonic() + wait
        return wait is not None and wait <= 0

    def postpone(self, tenant: str, slot: WorkerSlot) -> None:
        """Something is wrong there: look again later."""
        self._due[tenant][slot] = time.monotonic() + self._sweep_seconds

    async def rest(self) -> None:
        """Wait a moment before looking again."""
        await asyncio.sleep(POLL_SECONDS)
