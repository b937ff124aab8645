"""One research, top to bottom: the topic, sub-queries side by side, is it enough, other sub-queries, ranking.

It ends when enough was found on every side, when a round brings nothing new, after the iterations it was
given, or when its time is over; what was found until then is kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ragstone.answer.parts import PassagePlace, place_of
from ragstone.answer.research.plan import FEWEST, MOST, find_facets, propose_queries, split_topic
from ragstone.answer.research.relevance import GatheredPassages, Relevance
from ragstone.core.answers import Finding, Research, Round, Stopped
from ragstone.core.errors import ModelError, RagstoneError, RemoteError
from ragstone.core.protocols import LLM, Embedder, Reranker
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit

logger = logging.getLogger(__name__)
Search = Callable[[str], Awaitable[SearchResult]]
"""Searches for one query, as deep as the research goes."""
PLAN_SECONDS = 10.0
OUT_OF_TIME = "research: out of time"
DOCUMENTS = 5
"""Documents among which the places are shared out, if as many are about the topic."""
FEWEST_PASSAGES = 2
RERANKED = 2
"""Passages that are reranked for each one that is kept."""


@dataclass(frozen=True, slots=True)
class ResearchTask:
    """A topic to research, with its search and its limits."""

    topic: str
    k: int
    iterations: int
    """0 searches for the topic alone."""
    search: Search
    embedder: Embedder | None
    """The one of the kb that is searched; None judges relevance by words alone."""


class Researcher:
    """Finds what there is about a topic; with an LLM by its sub-queries, without one by facets of the topic."""

    def __init__(self, llm: LLM | None, reranker: Reranker | None, seconds: float) -> None:
        self._llm = llm
        self._reranker = reranker
        self._seconds = seconds
        self._relevance = Relevance()

    async def research(self, task: ResearchTask) -> Research:
        """Return findings, best first. Raises what the first search raises; later failures are remarks."""
        started = time.perf_counter()
        deadline = asyncio.get_running_loop().time() + self._seconds
        gathered, rounds = GatheredPassages(task.topic), list[Round]()
        stopped: Stopped = "iterations"
        try:
            async with asyncio.timeout_at(deadline):
                stopped = await self._run_rounds(task, gathered, rounds)
                findings = await self._rank(task, gathered)
        except TimeoutError:
            stopped, findings = "out_of_time", _rank_by_relevance(task, gathered)
            gathered.degraded[OUT_OF_TIME] = None
        return Research(
            topic=task.topic,
            findings=findings,
            queries=tuple(gathered.queries),
            rounds=tuple(rounds),
            uncovered=await asyncio.to_thread(gathered.find_uncovered, gathered.queries),
            stopped=stopped,
            took_ms=round((time.perf_counter() - started) * 1000, 3),
            degraded=tuple(gathered.degraded),
        )

    async def confidence(self, query: str, hits: Sequence[Hit], embedder: Embedder | None) -> float:
        """Return how far the best of the hits of a query is about it, from 0 to 1; 0 without hits."""
        known = {place_of(hit): hit.scores["dense"] for hit in hits if "dense" in hit.scores}
        return max(await self._judge_relevance(query, hits, embedder, known, {}), default=0.0)

    async def _run_rounds(self, task: ResearchTask, gathered: GatheredPassages, rounds: list[Round]) -> Stopped:
        proposed = asyncio.ensure_future(self._propose(task.topic, gathered, [])) if task.iterations else None
        try:
            gathered.queries.append(task.topic)
            gathered.add(task.topic, await task.search(task.topic))
            await self._judge(task, gathered)
            if proposed is None:
                return "iterations"
            queries = await asyncio.to_thread(self._fill_queries, gathered, await proposed)
        finally:
            if proposed is not None:
                proposed.cancel()
        for iteration in range(task.iterations):
            if not queries:
                return "nothing_new"
            new = await self._run_round(task, gathered, queries, rounds)
            # Sides that an earlier round asked for in vain were asked for in other words by this one.
            if len(gathered.about) >= task.k and not await asyncio.to_thread(gathered.find_uncovered, queries):
                return "sufficient"
            if not new and iteration:
                return "nothing_new"
            if iteration + 1 < task.iterations:
                asked = await self._propose(task.topic, gathered, gathered.queries)
                queries = await asyncio.to_thread(self._fill_queries, gathered, asked)
        return "iterations"

    async def _run_round(
        self, task: ResearchTask, gathered: GatheredPassages, queries: Sequence[str], rounds: list[Round]
    ) -> int:
        before = len(gathered.hits)
        gathered.queries += queries
        async with asyncio.TaskGroup() as group:
            for query in queries:
                group.create_task(_search(task, gathered, query))
        new = await self._judge(task, gathered)
        rounds.append(Round(tuple(queries), len(gathered.hits) - before, new))
        return new

    async def _propose(self, topic: str, gathered: GatheredPassages, asked: Sequence[str]) -> list[str]:
        """Return the LLM's sub-queries; empty without an LLM or when it fails."""
        if self._llm is None:
            return []
        headings = list(dict.fromkeys(hit.section or hit.title for hit in gathered.about)) if asked else []
        try:
            return await propose_queries(self._llm, topic, asked, headings, seconds=PLAN_SECONDS)
        except (RemoteError, ModelError) as error:
            logger.warning("research goes on without the LLM: %s", error)
            gathered.degraded[f"llm: {error}"] = None
            return []

    def _fill_queries(self, gathered: GatheredPassages, proposed: Sequence[str]) -> list[str]:
        """Return proposed sub-queries; where they are too few, facets of what was found as well."""
        if len(proposed) >= FEWEST:
            return list(proposed)
        asked = [*gathered.queries, *proposed]
        room = MOST - len(proposed)
        about = gathered.about
        # Passages about something else have no sides of this topic to offer.
        more = find_facets(gathered.topic, about, asked, room) if about else split_topic(gathered.topic, asked, room)
        return [*proposed, *more]

    async def _judge(self, task: ResearchTask, gathered: GatheredPassages) -> int:
        hits = gathered.hits_to_judge
        judged = await self._judge_relevance(task.topic, hits, task.embedder, gathered.cosines, gathered.degraded)
        return gathered.add_relevance(hits, judged)

    async def _judge_relevance(
        self,
        query: str,
        hits: Sequence[Hit],
        embedder: Embedder | None,
        known: dict[PassagePlace, float],
        degraded: dict[str, None],
    ) -> list[float]:
        if not hits:
            return []
        try:
            return await self._relevance.judge(query, hits, embedder, known)
        except (ModelError, RemoteError) as error:
            logger.warning("relevance is judged by words alone: %s", error)
            degraded[f"relevance: {error}"] = None
            return await self._relevance.judge(query, hits, None, known)

    async def _rank(self, task: ResearchTask, gathered: GatheredPassages) -> tuple[Finding, ...]:
        """Return the best of all that was found, whichever query found it."""
        if self._reranker is None or not gathered.about:
            return _rank_by_relevance(task, gathered)
        head = _hear_all(gathered.by_relevance, gathered, RERANKED * task.k)
        passages = [f"{hit.title}\n{hit.section}\n{hit.text}" for hit in head]
        try:
            scores = await self._reranker.score(task.topic, passages)
        except RagstoneError as error:
            logger.warning("research is not reranked: %s", error)
            gathered.degraded[f"rerank: {error}"] = None
            return _rank_by_relevance(task, gathered)
        judged = {place_of(hit): round(score, 6) for hit, score in zip(head, scores, strict=True)}
        ranked = sorted(head, key=lambda hit: (-judged[place_of(hit)], place_of(hit)))
        best = _hear_all(ranked, gathered, task.k)
        return tuple(_build_finding(gathered, hit, judged[place_of(hit)]) for hit in best)


async def _search(task: ResearchTask, gathered: GatheredPassages, query: str) -> None:
    try:
        gathered.add(query, await task.search(query))
    except RagstoneError as error:
        logger.warning("a sub-query failed: %s", error)
        gathered.degraded[f"search: {error}"] = None


def _rank_by_relevance(task: ResearchTask, gathered: GatheredPassages) -> tuple[Finding, ...]:
    """Return the passages by relevance alone; empty if none is about the topic, since others would mislead."""
    best = _hear_all(gathered.by_relevance, gathered, task.k) if gathered.about else []
    return tuple(_build_finding(gathered, hit, gathered.relevance[place_of(hit)]) for hit in best)


def _hear_all(ranked: Sequence[Hit], gathered: GatheredPassages, k: int) -> list[Hit]:
    """Return the best passages in their order, without one document taking the place of others that are about it.

    A document has its share of the places before the passages of others that are surely about the topic, and more
    only where these leave room.
    """
    share = max(FEWEST_PASSAGES, k // DOCUMENTS)
    heard: Counter[str] = Counter()
    first, more = list[Hit](), list[Hit]()
    for hit in ranked:
        within = gathered.is_about(hit) and heard[hit.document_id] < share
        heard[hit.document_id] += within
        (first if within else more).append(hit)
    chosen = {place_of(hit) for hit in [*first, *more][:k]}
    return [hit for hit in ranked if place_of(hit) in chosen]


def _build_finding(gathered: GatheredPassages, hit: Hit, relevance: float) -> Finding:
    queries = tuple(gathered.found_by[place_of(hit)])
    return Finding(hit, relevance, queries, gathered.is_about(hit))
