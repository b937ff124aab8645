"""Figures about what a tenant did in a period, from the retrieval log, the jobs, and the votes on what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ragstone.core.activity import SearchFacts, same_query
from ragstone.core.clock import canonical
from ragstone.core.search import SourceKind

if TYPE_CHECKING:
    from ragstone.engine.components import Components

SOURCES: tuple[SourceKind, ...] = ("documents", "database", "internet")
WEB_FAILED = "web: "
"""The beginning of what a search notes when the web search engine failed."""
QUALITY = ("recall@10", "p@5", "mrr@10", "ndcg@10")


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of searches in milliseconds; None where there were none."""

    searches: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """Searches of one source, and those that it had results for."""

    asked: int
    helpful: int
    failed: int


def latency_of(facts: Sequence[SearchFacts]) -> Latency:
    """Return the times of searches that succeeded."""
    import numpy as np

    times = [search.ms for search in facts if search.success]
    if not times:
        return Latency(0, None, None, None, None)
    p50, p95, p99 = (round(value, 3) for value in np.percentile(times, [50, 95, 99]).tolist())
    return Latency(len(times), round(float(np.mean(times)), 3), p50, p95, p99)


def sources_of(facts: Sequence[SearchFacts]) -> dict[str, SourceFigures]:
    """Return how often each source was asked, had something, and failed."""
    return {
        source: SourceFigures(
            asked=sum(source in search.asked for search in facts),
            helpful=sum(source in search.helpful for search in facts),
            failed=sum(_has_failed(search, source) for search in facts),
        )
        for source in SOURCES
    }


def _has_failed(search: SearchFacts, source: SourceKind) -> bool:
    if source == "documents":
        return not search.success
    return (WEB_FAILED if source == "internet" else "database: ") in search.problem


async def read_facts(
    components: Components, tenant: str, since: datetime, kb: str | None = None
) -> Sequence[SearchFacts]:
    """Return the figures of the searches of a tenant, newest first."""
    from ragstone.stores.activity.retrieval_log import RetrievalLog

    await components.search_log.flush()
    return await RetrievalLog(components.ledger, tenant).facts(since, kb)


async def count_documents(components: Components, tenant: str, since: datetime) -> dict[str, int]:
    """Return how many jobs about documents have completed and failed."""
    from ragstone.core.errors import TenantGone
    from ragstone.stores.ledger.jobs import count_ended

    try:
        return await components.ledger.read(tenant, count_ended, canonical(since))
    except TenantGone:
        return {}  # nothing was ever written for it


async def measure_quality(components: Components, tenant: str, since: datetime) -> tuple[int, dict[str, float]]:
    """Return how many searches were judged by votes or golden queries, and the mean of each measure over them."""
    import numpy as np

    from ragstone.evaluate.gaps import labels_of
    from ragstone.evaluate.metrics import score
    from ragstone.stores.activity.feedback import FeedbackRepository
    from ragstone.stores.activity.retrieval_log import RetrievalLog

    judgements, log = FeedbackRepository(components.ledger, tenant), RetrievalLog(components.ledger, tenant)
    scores = []
    for kb in await components.ledger.of(tenant).kbs():
        labels = labels_of(await judgements.votes(kb.name), await judgements.golden(kb.name))
        if not labels:
            continue
        for search in await log.searches(kb.name, since, success=True):
            judged = labels.get(same_query(search.query), {})
            if any(judged.values()):
                ranking = list(dict.fromkeys(hit.document_id for hit in search.shown))
                scores.append(score(ranking, judged, QUALITY))
    if not scores:
        return 0, {}
    return len(scores), {name: float(np.mean([found[name] for found in scores])) for name in QUALITY}
