"""Remember results for a minute, and only while nothing has changed; with Redis, for all processes.

A result is kept under everything that it depends on: the tenant and its id, the kb, its Space, the last commit's
place in the change feed, the settings and the whole request. So a deleted passage cannot come back from here, and
no result reaches another tenant, not even one that has the same name later.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache

from pydantic import TypeAdapter

from ragstone.core.errors import StoreBusy
from ragstone.core.ids import content_hash
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import SharedCache
from ragstone.core.search import SearchResult, Stage
from ragstone.core.types import KnowledgeBase
from ragstone.query.context import SearchRequest
from ragstone.settings.retrieval import RetrievalSettings

logger = logging.getLogger(__name__)
MB = 1024 * 1024
WORTH = 0.1
"""Share of a search's time that the lookup may take."""
HIT_BYTES = 2_000
"""The bytes of a hit beside its texts and metadata: scores, names."""
RESULT_BYTES = 4_000
MOST_RESULTS = 1024
_Key = tuple[str, str, int, str]
Identity = Callable[[str], Awaitable[str]]
"""Returns the id of the tenant that has a name now, or an empty text."""


@dataclass(frozen=True, slots=True)
class PackedResult:
    """A result as it is kept: a caller that changes its metadata does not change this copy."""

    result: SearchResult
    facts: tuple[str, ...]
    """The metadata of each hit, as JSON text: that cannot be changed, and its size is known."""

    @classmethod
    def of(cls, found: SearchResult) -> PackedResult:
        """Return a result without anything that its owner could change later."""
        bare = tuple(replace(hit, scores=dict(hit.scores), metadata={}) for hit in found.hits)
        return cls(replace(found, hits=bare), tuple(json.dumps(dict(hit.metadata)) for hit in found.hits))

    def unpack(self) -> SearchResult:
        """Return the result with mappings of its own."""
        hits = tuple(
            replace(hit, scores=dict(hit.scores), metadata=json.loads(facts))
            for hit, facts in zip(self.result.hits, self.facts, strict=True)
        )
        return replace(self.result, hits=hits)

    @property
    def bytes(self) -> int:
        """Return about how much memory it takes."""
        texts = sum(HIT_BYTES + 4 * (len(hit.text) + len(hit.context)) for hit in self.result.hits)
        return RESULT_BYTES + texts + sum(map(len, self.facts))


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    packed: PackedResult
    until: float
    bytes: int


class SearchCache:
    """Results in memory, oldest out first. What is degraded or was cut short for time is not kept."""

    def __init__(
        self,
        ledger: Ledger,
        identity: Identity,
        *,
        seconds: float = 60.0,
        memory_mb: int = 32,
        shared: SharedCache | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._shared = shared
        self._identity = identity
        self._seconds = seconds
        self._room = memory_mb * MB
        self._clock = clock
        self._kept: OrderedDict[_Key, _CacheEntry] = OrderedDict()
        self._states: dict[str, tuple[str, int]] = {}
        """The identity and the last change of each tenant, as its last search saw them."""
        self._bytes = 0

    async def search(
        self,
        tenant: str,
        kb: KnowledgeBase,
        settings: RetrievalSettings,
        request: SearchRequest,
        search: Callable[[], Awaitable[SearchResult]],
    ) -> SearchResult:
        """Return the result of the same search a moment ago, or that of `search`."""
        if not self._seconds:
            return await search()
        started = time.perf_counter()
        # Read before the search: a commit during the search makes its result outdated.
        try:
            async with asyncio.timeout(WORTH * settings.timeout):
                tenant_id = await self._identity(tenant)
                sequence = await self._ledger.of(tenant).sequence()
        except (TimeoutError, StoreBusy) as error:
            logger.info("search cache skipped: %s", error)
            return await search()
        self._tidy(tenant, tenant_id, sequence)
        key = tenant, tenant_id, sequence, _fingerprint(kb, settings, request)
        kept = self._kept.get(key)
        known = kept.packed.unpack() if kept else await self._recall(tenant_id, key)
        if known is not None:
            return _again(known, (time.perf_counter() - started) * 1000)
        found = await search()
        if _is_whole(found):
            self._keep(key, found)
            if self._shared:
                value = await asyncio.to_thread(_as_json().dump_json, found)
                await self._shared.put(tenant_id, content_hash(repr(key)), value, self._seconds)
        return found

    async def _recall(self, tenant_id: str, key: _Key) -> SearchResult | None:
        """Return the result that another process has found, or None."""
        if self._shared is None:
            return None
        value = await self._shared.get(tenant_id, content_hash(repr(key)))
        try:
            return None if value is None else _as_json().validate_json(value)
        except ValueError as error:
            logger.warning("cannot read a shared search result: %s", error)
            return None

    def __len__(self) -> int:
        return len(self._kept)

    def _tidy(self, tenant: str, tenant_id: str, sequence: int) -> None:
        """Drop what is too old, and what a tenant found before its last change."""
        moment = self._clock()
        while self._kept and next(iter(self._kept.values())).until <= moment:
            self._drop(next(iter(self._kept)))
        if self._states.get(tenant) == (tenant_id, sequence):
            return
        if len(self._states) >= MOST_RESULTS:
            self._states.clear()
        self._states[tenant] = tenant_id, sequence
        for key in [key for key in self._kept if key[0] == tenant and key[1:3] != (tenant_id, sequence)]:
            self._drop(key)

    def _keep(self, key: _Key, found: SearchResult) -> None:
        packed = PackedResult.of(found)
        size = packed.bytes
        if size > self._room or self._states.get(key[0]) != key[1:3]:
            return
        if key in self._kept:
            self._drop(key)
        self._kept[key] = _CacheEntry(packed, self._clock() + self._seconds, size)
        self._bytes += size
        while self._bytes > self._room or len(self._kept) > MOST_RESULTS:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: _Key) -> None:
        self._bytes -= self._kept.pop(key).bytes


def _fingerprint(kb: KnowledgeBase, settings: RetrievalSettings, request: SearchRequest) -> str:
    # By their written form: to Python 1, 1.0 and True are equal, to a filter they are not.
    return content_hash(repr((kb, settings, request)))


@cache
def _as_json() -> TypeAdapter[SearchResult]:
    return TypeAdapter(SearchResult)


def _is_whole(found: SearchResult) -> bool:
    return not found.degraded and not any(stage.skipped for stage in found.trace)


def _again(result: SearchResult, ms: float) -> SearchResult:
    took = round(ms, 3)
    stage = Stage("cache", took, 1, len(result.hits))
    return replace(result, trace=(stage,), took_ms=took)
