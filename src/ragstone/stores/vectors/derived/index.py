"""A vector database outside the ledger, as an index that answers like one inside it.

What is to go live is written there first, so a live chunk can always be found there. What is live no more may
linger: every hit is looked up in the ledger, and what drops out is made up for by asking further. A filter that the
engine cannot apply with exactly our meaning, a gap in its answer, and the time it needs to catch up, are bridged by
the ledger's own vectors.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakValueDictionary

from ragstone.core.errors import PointRefused, RagstoneError, RemoteError, StoreError
from ragstone.core.filters import Filter, leaves_of
from ragstone.core.search import add_note
from ragstone.core.types import Candidate, KnowledgeBase, Space, Vector
from ragstone.core.vectors import RESERVED, VectorPartition, VectorProvider
from ragstone.stores.indexes import check_query_vector
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.documents import read_kbs
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.derived.follow import PartitionFollower
from ragstone.stores.vectors.partitions import partition_of, partition_of_mark
from ragstone.stores.vectors.source_types import CollectionsBySourceType

logger = logging.getLogger(__name__)
Search = Callable[[int], Awaitable[list[Candidate]]]
"""Asks the engine for so many."""
SPARE = 10
"""The number of extra candidates that are asked for at first, for those that drop out."""
SAME = 1e-6
NOT_HELD = frozenset((*RESERVED, "created_at", "updated_at"))
"""Fields that a provider does not hold, or holds as Ragstone's own."""
SINCE_LAYOUTS = frozenset(("source", "connector"))
"""Fields that mean something else in points that were written before their layout was recorded."""
REST_SECONDS = 10.0
"""Seconds that searches leave an engine alone that could not catch up."""
REFUSED_SECONDS = 600.0
"""The same for one that refused a point: a partition is filled from its beginning, up to the same point again."""
LEFT_SECONDS = 10.0
"""Seconds that a mark may stand before changes: a process that runs applies its own at once."""
ALL = ""
CATCH_UP_SECONDS = 1.0
"""Seconds that searches wait for an engine to catch up before the ledger answers in its place."""


class _CatchUp(NamedTuple):
    task: asyncio.Task[None]
    since: float


class _Lag(NamedTuple):
    mark: int
    since: float


class DerivedIndex:
    """Implements `core.protocols.VectorIndex` and `LedgerFollower` over a `VectorProvider`."""

    def __init__(
        self, ledger: SqlLedger, provider: VectorProvider, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger = ledger
        self._provider = provider
        self._follower = PartitionFollower(ledger, provider)
        self._clock = clock
        self._current: set[str] = set()
        """Tenants of which nothing was left to do when this process last looked."""
        self._followed: set[VectorPartition] = set()
        """Partitions that hold all they should, as far as this process knows; of the others the ledger answers."""
        self._behind: dict[VectorPartition, _Lag] = {}
        """Partitions that lack changes which are committed, as the last search saw them."""
        self._without_layout: set[VectorPartition] = set()
        """Those of them whose points were written before layouts were recorded."""
        self._resting: dict[str, float] = {}
        """Until when searches do not try again to settle, by tenant, or for all of them when the engine is away."""
        self._trouble: dict[str, str] = {}
        """Why they rest, under the same names."""
        self._closed = False
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._catching_up: dict[str, _CatchUp] = {}

    @property
    def provider(self) -> VectorProvider:
        """Return the engine behind this index."""
        return self._provider

    async def search(
        self, tenant: str, kb: KnowledgeBase, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        space = kb.space
        if space is None:
            return []
        check_query_vector(kb, space, vector)
        partition = await self.ready(tenant, space)
        if partition is None or not self.can_filter(partition, where):
            return await self._ledger.read(tenant, index_feed.nearest, kb, space, vector, k, where)
        return await self._ask(tenant, partition, kb, space, vector, k, where)

    async def ready(self, tenant: str, space: Space) -> VectorPartition | None:
        """Return the partition if the engine can be asked now; None when the ledger has to answer."""
        tenant_id, mark = await self._ledger.read(tenant, _find_lag, self._provider.name, space)
        partition = partition_of(tenant_id, space)
        if self._is_left_behind(partition, mark):
            self._current.discard(tenant_id)
        if await self._wait_for(tenant, partition) and partition in self._followed:
            return partition
        if trouble := self._why_resting(tenant_id):
            add_note(f"{self._provider.name} is left alone, and the ledger answers in its place: {trouble}")
        return None

    def can_filter(self, partition: VectorPartition, where: Filter | None) -> bool:
        """Return whether the engine applies a filter to a partition as the ledger would."""
        if where is None:
            return True
        unknown = NOT_HELD | SINCE_LAYOUTS if partition in self._without_layout else NOT_HELD
        return unknown.isdisjoint(leaf.field for leaf in leaves_of(where)) and self._provider.can_filter(where)

    async def prepare(self, tenant: str, kb: KnowledgeBase, staged: Sequence[tuple[str, int]]) -> None:
        if kb.space is not None:
            await self._follower.prepare(tenant, kb, kb.space, staged)

    async def catch_up(self, tenant: str) -> None:
        try:
            tenant_id = await self._ledger.read(tenant, _tenant_id)
        except RagstoneError:
            self._current.clear()  # whose turn it was cannot be told
            raise
        async with self._lock(tenant_id):
            await self._follow_ledger(tenant, tenant_id)

    async def erase(self, tenant: str) -> None:
        """Remove everything of a tenant; what a crash leaves is still marked, and goes the next time."""
        tenant_id = await self._ledger.read(tenant, _tenant_id)
        async with self._lock(tenant_id):
            self._current.discard(tenant_id)
            self._follower.forget_prepared(tenant_id)
            for mark in (await self._follower.due(tenant)).marks:
                partition = partition_of_mark(tenant_id, mark)
                self._followed.discard(partition)
                await self._follower.drop(tenant, partition, mark)

    async def count_collections(self, tenant: str) -> Mapping[str, int] | None:
        """Return the points of the live Spaces by source type; None where these have no collections of their own."""
        if not isinstance(self._provider, CollectionsBySourceType):
            return None
        found: Counter[str] = Counter()
        tenant_id, kbs = await self._ledger.read(tenant, lambda connection, own: (own, read_kbs(connection, own)))
        for kb in kbs:
            if kb.space:
                found.update(await self._provider.counts(partition_of(tenant_id, kb.space)))
        return found

    async def fill(
        self, tenant: str, kb: KnowledgeBase, space: Space, on_progress: Callable[[int], None] | None = None
    ) -> int:
        """Write every live chunk of a Space; return how many there were."""
        async with self._lock(await self._ledger.read(tenant, _tenant_id)):
            return await self._follower.fill(tenant, kb, space, on_progress)

    async def close(self) -> None:
        self._closed = True
        unfinished = [catching_up.task for catching_up in self._catching_up.values()]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        await self._provider.close()

    async def _ask(
        self,
        tenant: str,
        partition: VectorPartition,
        kb: KnowledgeBase,
        space: Space,
        vector: Vector,
        k: int,
        where: Filter | None,
    ) -> list[Candidate]:
        kept, _ = await self.found_live(
            tenant, kb, k, where, lambda asked: self._provider.search(partition, vector, asked, where)
        )
        if len(kept) < k and len(kept) < await self._ledger.read(tenant, index_feed.count_live, kb, space, where):
            logger.info("%s missed chunks that exist; the ledger answers instead", self._provider.name)
            return await self._ledger.read(tenant, index_feed.nearest, kb, space, vector, k, where)
        return kept

    async def found_live(
        self, tenant: str, kb: KnowledgeBase, k: int, where: Filter | None, search: Search
    ) -> tuple[list[Candidate], bool]:
        """Return the best k that the engine finds and the ledger has live, and whether the engine reached its limit."""
        most = self._provider.capabilities.max_k
        asked = min(k + SPARE, most)
        while True:
            found = await search(asked)
            live = await self._ledger.read(tenant, index_feed.live_among, kb, [hit.chunk_id for hit in found], where)
            kept = sorted((hit for hit in found if hit.chunk_id in live), key=lambda hit: (-hit.score, hit.chunk_id))
            enough = len(found) < asked or _is_enough(found, kept, k)
            if enough or asked >= most:
                return kept[:k], not enough
            asked = min(4 * asked, most)

    async def _wait_for(self, tenant: str, partition: VectorPartition) -> bool:
        """Catch up before a search, if that is due; return whether there is nothing left to wait for.

        It goes on when the search that began it has no time left: filling an engine may take minutes, and would
        otherwise begin again with every search.
        """
        if self._closed or not self._is_due(partition):
            return not self._closed
        under_way = self._catching_up.get(partition.tenant_id)
        if under_way is None:
            task = asyncio.create_task(self._catch_up_if_due(tenant, partition))
            under_way = _CatchUp(task, self._clock())
            self._catching_up[partition.tenant_id] = under_way
            task.add_done_callback(lambda _: self._catching_up.pop(partition.tenant_id, None))
        waited = self._clock() - under_way.since
        done, _ = await asyncio.wait({under_way.task}, timeout=max(0.0, CATCH_UP_SECONDS - waited))
        return bool(done) and not under_way.task.cancelled()

    async def _catch_up_if_due(self, tenant: str, partition: VectorPartition) -> None:
        async with self._lock(partition.tenant_id):
            # The search that came first may have done it, or found that the engine is away.
            if self._is_due(partition):
                try:
                    await self._follow_ledger(tenant, partition.tenant_id)
                except RagstoneError as error:
                    logger.warning("%s is behind, and will catch up: %s", self._provider.name, error)
                except Exception:
                    # A defect of ours or of a driver: it must be seen, and must not keep anybody from searching.
                    logger.exception("%s cannot catch up", self._provider.name)

    def _is_left_behind(self, partition: VectorPartition, mark: int | None) -> bool:
        """Return whether a mark has stood before changes for so long that their writer must have ended."""
        if mark is None:
            self._behind.pop(partition, None)
            return False
        lag = self._behind.get(partition)
        if lag is None or lag.mark != mark:
            self._behind[partition] = lag = _Lag(mark, self._clock())
        return self._clock() - lag.since >= LEFT_SECONDS

    def _is_due(self, partition: VectorPartition) -> bool:
        if partition.tenant_id in self._current and partition in self._followed:
            return False
        return not self._why_resting(partition.tenant_id)

    def _why_resting(self, tenant_id: str) -> str:
        """Return why searches leave the engine alone now; empty when they do not."""
        now = self._clock()
        return next((self._trouble[whose] for whose in (ALL, tenant_id) if self._resting.get(whose, 0.0) > now), "")

    async def _follow_ledger(self, tenant: str, tenant_id: str) -> None:
        try:
            await self._follow_all(tenant)
        except BaseException as error:
            self._current.discard(tenant_id)
            if isinstance(error, Exception):
                # An engine that is away is so for everybody; what it refuses, it refuses this tenant.
                is_refused = isinstance(error, PointRefused)
                is_away = isinstance(error, StoreError | RemoteError) and not is_refused
                whose = ALL if is_away else tenant_id
                self._resting[whose] = self._clock() + (REFUSED_SECONDS if is_refused else REST_SECONDS)
                advice = error.advice if isinstance(error, RagstoneError) else ""
                said = str(error) or type(error).__name__
                self._trouble[whose] = f"{said} ({advice})" if advice else said
            raise
        finally:
            self._follower.forget_prepared(tenant_id)
        self._current.add(tenant_id)
        self._resting.pop(tenant_id, None)

    async def _follow_all(self, tenant: str) -> None:
        """Bring every Space up to date; one that is refused does not keep the others from it."""
        tenant_id, marks, unheld = await self._follower.due(tenant)
        reached: dict[int, int] = {}
        failures: list[RagstoneError] = []
        for kb, space in unheld:
            with self._following(partition_of(tenant_id, space), failures):
                await self._follower.fill(tenant, kb, space)
        for mark in marks:
            partition = partition_of_mark(tenant_id, mark)
            first = partition not in self._followed
            (self._without_layout.discard if mark.layout else self._without_layout.add)(partition)
            with self._following(partition, failures):
                sequence = await self._follower.follow(tenant, partition, mark, first=first)
                if sequence is not None:
                    reached[mark.space_id] = sequence
        await self._follower.advance(tenant, tenant_id, reached)
        if failures:
            raise failures[0]

    @contextmanager
    def _following(self, partition: VectorPartition, failures: list[RagstoneError]) -> Iterator[None]:
        try:
            yield
        except RagstoneError as error:
            self._followed.discard(partition)
            if error.retryable:
                # The engine is away: asking it for each of the others would only take as long again.
                self._followed -= {followed for followed in self._followed if followed.tenant_id == partition.tenant_id}
                raise
            failures.append(error)
        else:
            self._followed.add(partition)

    def _lock(self, tenant_id: str) -> asyncio.Lock:
        return self._locks.setdefault(tenant_id, asyncio.Lock())


def _is_enough(found: Sequence[Candidate], kept: Sequence[Candidate], k: int) -> bool:
    """Return whether the best k are certain: found by an engine, and live in the ledger."""
    # Among equals at the cut, which ones came is the engine's whim: all are needed to take them in order of id.
    return len(kept) >= k and kept[k - 1].score - found[-1].score > SAME


def _tenant_id(connection: Connection, tenant_id: str) -> str:
    return tenant_id


def _find_lag(connection: Connection, tenant_id: str, index: str, space: Space) -> tuple[str, int | None]:
    return tenant_id, index_feed.find_lag(connection, tenant_id, index, space.id)
