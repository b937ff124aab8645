"""Remembers searches off the request path: a search leaves a note, and notes are written together a moment later.

A search must never wait for this or fail with it. What cannot be written is counted and logged, not raised.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from ragstone.core.activity import SHOWN, LoggedSearch, Note, Shown
from ragstone.core.analyzer import analyze, fold
from ragstone.core.clock import now
from ragstone.core.errors import RagstoneError
from ragstone.core.types import Hit, SearchResult
from ragstone.stores.activity import ActivityFiles
from ragstone.stores.activity_rows import add_searches

logger = logging.getLogger(__name__)
PAUSE_SECONDS = 1.0
MOST_WAITING = 2000
"""Notes that are kept for the writer; what comes on top while it does not keep up is dropped."""
MOST_QUERY_CHARS = 2000
MOST_PASSAGE_CHARS = 4000
Still = Callable[[str, str], Awaitable[bool]]
"""Whether the tenant of this name is still the one of this id: nothing is kept of those who are gone."""


class SearchLog:
    """Takes notes of searches and writes them in batches."""

    def __init__(
        self, files: ActivityFiles, days: int, still: Still, clock: Callable[[], datetime] = now
    ) -> None:
        self._files = files
        self._still = still
        self._kept = timedelta(days=days)
        self._clock = clock
        self._waiting: list[Note] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self.dropped = 0

    def note(self, tenant: str, tenant_id: str, kb: str, result: SearchResult) -> None:
        """Remember a search; returns at once."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(Note(tenant, tenant_id, kb, self._clock(), result))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    async def flush(self) -> None:
        """Write what waits."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        # Shielded: whoever gives up waiting takes neither the batch nor the others who wait for it along.
        if running := self._running():
            await asyncio.shield(running)
        if self._waiting or self._running():
            await asyncio.shield(self._running() or self._begin())

    async def close(self) -> None:
        """Write what waits, for the last time."""
        await self.flush()
        if self.dropped:
            logger.warning("%d searches were not logged in all", self.dropped)

    def _start(self) -> None:
        self._timer = None
        if self._running() is None:
            self._begin()
        else:  # a slow disk: what came meanwhile takes the next turn
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    def _running(self) -> asyncio.Task[None] | None:
        if self._writing and self._writing.done():
            self._writing = None
        return self._writing

    def _begin(self) -> asyncio.Task[None]:
        self._writing = asyncio.ensure_future(self._write())
        return self._writing

    async def _write(self) -> None:
        notes, self._waiting = self._waiting, []
        by_tenant: dict[tuple[str, str], list[Note]] = defaultdict(list)
        for note in notes:
            by_tenant[note.tenant, note.tenant_id].append(note)
        for (tenant, tenant_id), its in by_tenant.items():
            try:
                if await self._still(tenant, tenant_id):
                    await self._files.write(tenant_id, self._work(its))
            except RagstoneError as error:
                self.dropped += len(its)
                logger.warning("%d searches were not logged: %s", len(its), error)

    def _work(self, notes: list[Note]) -> Callable[[sqlite3.Connection], None]:
        oldest = self._clock() - self._kept
        return lambda db: add_searches(db, map(logged, notes), oldest)


def logged(note: Note) -> LoggedSearch:
    """What is remembered of a search; this takes a few milliseconds."""
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
        shown=tuple(
            Shown(rank, hit.chunk_id, hit.document_id, hit.score) for rank, hit in enumerate(hits, start=1)
        ),
    )


def _words(query: str, hits: Sequence[Hit]) -> tuple[int, tuple[str, ...]]:
    """How many words with a meaning of their own were asked for, and which of them no passage has."""
    found = " ".join(f"{hit.title} {hit.section} {hit.text[:MOST_PASSAGE_CHARS]}" for hit in hits)
    said = fold(found).lower()
    telling = set(
        analyze(query)
    )  # a function word alone would count as a word, within a question it does not
    terms = {word: telling.intersection(analyze(word)) for word in dict.fromkeys(query.split())}
    asked = {word: its for word, its in terms.items() if its}
    return len(asked), tuple(
        word for word, its in asked.items() if not any(_is_in(said, term) for term in its)
    )


def _is_in(said: str, term: str) -> bool:
    # Analysing the passages would take a hundred times as long. Stems begin their words, but for a final y.
    return term.rstrip("i") in said
