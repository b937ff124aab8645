"""Give tenants with work their turns, one after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import NamedTuple

from ragstone.core.jobs import JobKind, Lane
from ragstone.core.protocols import Queue

POLL_SECONDS = 0.2
FRESH_SECONDS = POLL_SECONDS / 2
"""Seconds that all slots share one reading of the work signals."""


class WorkerSlot(NamedTuple):
    """The kind of jobs that one of a worker's loops takes."""

    kind: JobKind
    lane: Lane


class TenantScheduler:
    """Orders the tenants that may have work, so that none waits behind another's batch."""

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
        """Return all tenants that this worker works for, with their work signals."""
        bells = await self._queue.work_signals()
        return {name: bell for name, bell in bells.items() if self._only in (None, name)}

    async def next_tenants(self, slot: WorkerSlot) -> list[str]:
        """Return the tenants that may have work now, the one with the latest turn last."""
        if time.monotonic() - self._bells[0] >= FRESH_SECONDS:
            self._bells = time.monotonic(), await self.tenants()
        moment, bells = time.monotonic(), self._bells[1]
        # A crash between commit and signal loses the signal, so all tenants are looked at now and then.
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
        """Move a tenant behind all others."""
        self._order = [*(other for other in self._order if other != tenant), tenant]

    async def has_work(self, tenant: str, slot: WorkerSlot) -> bool:
        """Return whether a job or a lease is due; if not, the tenant is skipped until the next one is."""
        due = self._due[tenant]  # a signal that arrives during the query replaces this dictionary
        wait = await self._queue.of(tenant).next_due(self._attempts, slot.kind, slot.lane)
        due[slot] = float("inf") if wait is None else time.monotonic() + wait
        return wait is not None and wait <= 0

    def postpone(self, tenant: str, slot: WorkerSlot) -> None:
        """Skip a tenant with errors for a while."""

        self._due[tenant][slot] = time.monotonic() + self._sweep_seconds

    async def rest(self) -> None:
        """Wait a moment before looking again."""
        await asyncio.sleep(POLL_SECONDS)
