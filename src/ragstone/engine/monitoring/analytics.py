"""Analytics of a tenant: volumes, times, sources and costs by period, from the retrieval log and the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from ragstone.core.activity import SearchFacts
from ragstone.core.clock import now
from ragstone.engine.access import WorkspacePart, record_caller
from ragstone.engine.monitoring.figures import (
    Latency,
    SourceFigures,
    count_documents,
    latency_of,
    measure_quality,
    read_facts,
    sources_of,
)
from ragstone.query.context import checked_count

MOST_DAYS = 3650


@dataclass(frozen=True, slots=True)
class AnalyticsSummary:
    """The activity of a tenant in some days up to now."""

    since: datetime
    searches: int
    failed: int
    nothing: int
    """Searches that succeeded and found nothing."""
    success_rate: float | None
    no_result_rate: float | None
    degraded: int
    latency: Latency
    latency_by_mode: Mapping[str, Latency]
    embedding_ms: float | None
    """The mean time of embedding a query."""
    sources: Mapping[str, SourceFigures]
    judged: int
    """Searches whose results somebody has judged."""
    quality: Mapping[str, float]
    documents_completed: int
    documents_failed: int
    queued: int
    """Documents that wait or are worked on now."""
    cost_month: float
    """US dollars of the month that runs."""
    cost_by_kind: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The searches of one day (UTC)."""

    day: date
    searches: int
    failed: int
    nothing: int
    latency: Latency


@record_caller
class Analytics(WorkspacePart):
    """Reports on what a tenant did."""

    async def summary(self, *, days: int = 30, kb: str | None = None) -> AnalyticsSummary:
        """Return figures of the last days; of all kbs, or the searches of one."""
        tenant = await self._scope.admit()
        since = now() - timedelta(days=checked_count("days", days, most=MOST_DAYS))
        facts = await self._read(since, kb)
        judged, quality = await measure_quality(self._components, tenant, since)
        documents = await count_documents(self._components, tenant, since)
        jobs = await self._components.stores.queue.of(tenant).counts()
        usage = await self._components.stores.tenants.usage(tenant)
        searches, failed, nothing = _count(facts)
        embedding = [search.embedding_ms for search in facts if search.embedding_ms]
        return AnalyticsSummary(
            since=since,
            searches=searches,
            failed=failed,
            nothing=nothing,
            success_rate=(searches - failed) / searches if searches else None,
            no_result_rate=nothing / (searches - failed) if searches > failed else None,
            degraded=sum(search.success and bool(search.problem) for search in facts),
            latency=latency_of(facts),
            latency_by_mode={
                mode: latency_of([search for search in facts if search.mode == mode])
                for mode in sorted({search.mode for search in facts})
            },
            embedding_ms=round(sum(embedding) / len(embedding), 3) if embedding else None,
            sources=sources_of(facts),
            judged=judged,
            quality=quality,
            documents_completed=documents.get("completed", 0),
            documents_failed=documents.get("failed", 0),
            queued=jobs.get("pending", 0) + jobs.get("running", 0),
            cost_month=usage.cost,
            cost_by_kind=dict(usage.cost_by_kind),
        )

    async def days(self, *, days: int = 30, kb: str | None = None) -> list[DayFigures]:
        """Return figures of each of the last days on which something was searched, oldest first."""
        await self._scope.admit()
        facts = await self._read(now() - timedelta(days=checked_count("days", days, most=MOST_DAYS)), kb)
        by_day: dict[date, list[SearchFacts]] = defaultdict(list)
        for search in facts:
            by_day[search.moment.date()].append(search)
        return [DayFigures(day, *_count(found), latency_of(found)) for day, found in sorted(by_day.items())]

    async def _read(self, since: datetime, kb: str | None) -> Sequence[SearchFacts]:
        name = None if kb is None else (await self._scope.kb(kb)).name
        return await read_facts(self._components, self._scope.tenant, since, name)


def _count(facts: Sequence[SearchFacts]) -> tuple[int, int, int]:
    """Return how many searches there were, failed, and found nothing though a source was asked."""
    failed = sum(not search.success for search in facts)
    return len(facts), failed, sum(search.success and bool(search.asked) and not search.results for search in facts)
