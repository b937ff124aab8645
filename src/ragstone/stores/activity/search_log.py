"""Logs searches off the request path: a search leaves a note, and notes are written together a moment later.

A search must never wait for this or fail with it. What cannot be written is counted and logged, not raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from ragstone.core.activity import SHOWN, LoggedSearch, Note, Shown
from ragstone.core.background import BatchWriter
from ragstone.core.clock import now
from ragstone.core.errors import RagstoneError, TenantGone
from ragstone.core.search import SearchResult, SourceKind
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze, fold
from ragstone.stores.activity.retrieval_log import RetrievalLog
from ragstone.stores.ledger.ledger import SqlLedger

logger = logging.getLogger(__name__)
MOST_QUERY_CHARS = 2000
MOST_ERROR_CHARS = 1000
MOST_PASSAGE_CHARS = 4000
EMBEDDING = "embed_query"
"""The stage that turns a query into vectors."""


class SearchLog:
    """Takes notes of searches and writes them in batches to the retrieval logs of their tenants."""

    def __init__(self, ledger: SqlLedger, days: int, clock: Callable[[], datetime] = now) -> None:
        self._ledger = ledger
        self._kept = timedelta(days=days)
        self._clock = clock
        self._noted: BatchWriter[Note] = BatchWriter(self._write)
        self._failed = 0

    @property
    def dropped_count(self) -> int:
        """Searches that came too fast or could not be written."""
        return self._noted.dropped + self._failed

    def note(
        self, tenant: str, tenant_id: str, kb: str, result: SearchResult, conversation: str = "", error: str = ""
    ) -> None:
        """Remember a search; returns at once."""
        self._noted.add(Note(tenant, tenant_id, kb, self._clock(), result, conversation, error))

    async def flush(self) -> None:
        """Write what waits."""
        await self._noted.flush()

    async def close(self) -> None:
        """Write what waits, for the last time."""
        await self.flush()
        if self.dropped_count:
            logger.warning("%d searches were not logged in all", self.dropped_count)

    async def _write(self, notes: list[Note]) -> None:
        by_tenant: dict[str, list[Note]] = defaultdict(list)
        for note in notes:
            by_tenant[note.tenant].append(note)
        oldest = self._clock() - self._kept
        for tenant, its_notes in by_tenant.items():
            try:
                searches = await asyncio.to_thread(_make_entries, its_notes)
                await RetrievalLog(self._ledger, tenant).add(searches, oldest)
            except TenantGone:
                continue  # nothing is kept of a tenant that is deleted
            except RagstoneError as error:
                self._failed += len(its_notes)
                logger.warning("%d searches were not logged: %s", len(its_notes), error)


def _make_entries(notes: Sequence[Note]) -> list[LoggedSearch]:
    return [_make_entry(note) for note in notes]


def _make_entry(note: Note) -> LoggedSearch:
    """Return the log entry of a search; this takes a few milliseconds."""
    result, hits = note.result, note.result.hits[:SHOWN]
    similarities = [hit.scores["dense"] for hit in result.hits if "dense" in hit.scores]
    query = result.query[:MOST_QUERY_CHARS]
    asked, missing = _words(query, hits)
    return LoggedSearch(
        moment=note.moment,
        kb=note.kb,
        query=query,
        mode=result.mode,
        latency_ms=result.took_ms,
        num_results=len(result.hits),
        top_score=hits[0].score if hits else 0.0,
        similarity=max(similarities, default=None),
        coverage=1 - len(missing) / asked if asked else float(bool(hits)),
        missing=missing,
        shown=tuple(Shown(rank, hit.chunk_id, hit.document_id, hit.score) for rank, hit in enumerate(hits, start=1)),
        tenant_id=note.tenant_id,
        conversation=note.conversation,
        query_type=result.analysis.type if result.analysis else "",
        sources_queried=tuple(_list_asked(note)),
        sources_returned=tuple(_list_helpful(result)),
        database_results_count=len(result.records),
        internet_results_count=len(result.web),
        embedding_time_ms=round(sum(stage.ms for stage in result.trace if stage.stage == EMBEDDING), 3),
        success=not note.error,
        error_message=(note.error or "; ".join(result.degraded))[:MOST_ERROR_CHARS],
    )


def _list_asked(note: Note) -> list[SourceKind]:
    """Return the sources that were asked; none when the search failed or had nothing to look for."""
    if note.error or note.result.route == "none":
        return []
    analysis = note.result.analysis
    asked: list[SourceKind] = ["documents"] if analysis is None or "documents" in analysis.sources else []
    stages = {stage.stage: stage for stage in note.result.trace}
    if "database" in stages:
        asked.append("database")
    if "web" in stages and not stages["web"].skipped:
        asked.append("internet")
    return asked


def _list_helpful(result: SearchResult) -> list[SourceKind]:
    """Return the sources that had results."""
    brought: dict[SourceKind, int] = {
        "documents": len(result.hits),
        "database": len(result.records),
        "internet": len(result.web),
    }
    return [source for source, count in brought.items() if count]


def _words(query: str, hits: Sequence[Hit]) -> tuple[int, tuple[str, ...]]:
    """Return the number of words with a meaning of their own in a query, and those that no passage has."""
    found = " ".join(f"{hit.title} {hit.section} {hit.text[:MOST_PASSAGE_CHARS]}" for hit in hits)
    said = fold(found).lower()
    telling = set(analyze(query))  # a function word alone would count as a word, within a question it does not
    terms = {word: telling.intersection(analyze(word)) for word in dict.fromkeys(query.split())}
    asked = {word: its for word, its in terms.items() if its}
    return len(asked), tuple(word for word, its in asked.items() if not any(_is_in(said, term) for term in its))


def _is_in(said: str, term: str) -> bool:
    # Analysing the passages would take a hundred times as long. Stems begin their words, but for a final y.
    return term.rstrip("i") in said
