"""The state of each part of an engine, asked at most every two seconds and never for longer than that."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragstone.core.errors import RagstoneError, TenantGone

if TYPE_CHECKING:
    from ragstone.engine.components import Components

OK = "ok"
FRESH_SECONDS = 2.0
"""Seconds for which a state is not looked at again: probes come often and must cost nothing."""
SECONDS = 2.0
"""The longest that a part may take to answer; one that takes longer is `timeout`."""
LITTLE_SPACE = 64 * 1024 * 1024
LOOKED_AT = 20
"""The number of tenants that are looked at for a document."""
REQUIRED = frozenset({"ledger", "embedder", "worker"})
"""Without these requests or jobs fail; without the others they do less, and say so."""
NOTHING_WRONG = frozenset({OK, "empty"})
Status = Literal["ok", "degraded", "unavailable"]
Look = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Readiness:
    """The state of each part: `ok`, or the code of what is wrong with it."""

    components: Mapping[str, str]

    @property
    def status(self) -> Status:
        """`unavailable` when a part that requests need does not work, `degraded` when another one does not."""
        wrong = {name for name, state in self.components.items() if state not in NOTHING_WRONG}
        if wrong & REQUIRED:
            return "unavailable"
        return "degraded" if wrong else "ok"

    @property
    def is_ready(self) -> bool:
        return self.status != "unavailable"


class ReadinessMonitor:
    """Looks at the parts of an engine."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._known: Readiness | None = None
        self._known_at = 0.0
        self._turn = asyncio.Lock()
        self._embedded = False
        self._embedding: asyncio.Task[object] | None = None

    async def check(self) -> Readiness:
        """Return the state of each part, as it was found now or a moment ago."""
        async with self._turn:
            if self._known is None or time.monotonic() - self._known_at >= FRESH_SECONDS:
                looks = self._looks()
                states = await asyncio.gather(*(_look(look) for look in looks.values()))
                self._known = Readiness(dict(zip(looks, states, strict=True)))
                self._known_at = time.monotonic()
            return self._known

    def _looks(self) -> dict[str, Look]:
        stores = self._components.stores
        looks: dict[str, Look] = {"ledger": self._ledger, "index": self._index, "embedder": self._embedder}
        if stores.derived:
            looks["vectors"] = self._vectors
        if stores.shared_cache:
            looks["redis"] = self._redis
        return {**looks, "disk": self._disk}

    async def _ledger(self) -> str:
        await self._components.stores.tenants.all()
        return OK

    async def _index(self) -> str:
        """Say whether there is something to be found, and whether the ledger of a tenant cannot be read."""
        tenants = [tenant for tenant in await self._components.stores.tenants.all() if tenant.state == "active"]
        for tenant in tenants[:LOOKED_AT]:
            ledger = self._components.ledger.of(tenant.name)
            try:
                for kb in await ledger.kbs():
                    if await ledger.documents(kb, limit=1):
                        return OK
            except TenantGone:
                continue  # deleted meanwhile, or it has no ledger yet
        return "empty" if len(tenants) <= LOOKED_AT else OK

    async def _embedder(self) -> str:
        # Once it has worked: a model in this process does not go away, and one behind an address costs money.
        if self._embedded and not self._components.settings.embedding.remote.base_url:
            return OK
        if self._embedding is None:
            self._embedding = asyncio.ensure_future(self._components.embedder.embed(["ready"], "query"))
        # Not cancelled when it takes long: a model that is being loaded would never be there.
        done, _ = await asyncio.wait([self._embedding], timeout=SECONDS / 2)
        if not done:
            return "loading" if not self._embedded else "timeout"
        embedding, self._embedding = self._embedding, None
        embedding.result()
        self._embedded = True
        return OK

    async def close(self) -> None:
        """End what is still being looked at."""
        if self._embedding:
            self._embedding.cancel()
            await asyncio.gather(self._embedding, return_exceptions=True)

    async def _vectors(self) -> str:
        derived = self._components.stores.derived
        assert derived is not None
        await derived.provider.health()
        return OK

    async def _redis(self) -> str:
        cache = self._components.stores.shared_cache
        assert cache is not None
        await cache.check()
        return OK

    async def _disk(self) -> str:
        return await asyncio.to_thread(_check_disk, self._components.settings.data_dir)


async def _look(look: Look) -> str:
    try:
        async with asyncio.timeout(SECONDS):
            return await look()
    except TimeoutError:
        return "timeout"
    except RagstoneError as error:
        return error.code
    except OSError:
        return "io_failed"


def _check_disk(folder: Path) -> str:
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK | os.X_OK) or os.statvfs(there).f_flag & os.ST_RDONLY:
        return "read_only"
    return "full" if shutil.disk_usage(there).free < LITTLE_SPACE else OK
