"""One search as its stages see it: the checked request, the clock and the trace, and what the stages pass on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Literal, ParamSpec, TypeVar, cast, get_args

from ragstone.core.errors import InputError, SearchFailed, StoreBusy
from ragstone.core.filters import Filter, parse_filter
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import Arm, SearchQuery, SearchResult, Stage
from ragstone.core.types import KnowledgeBase, LiveChunk, Mode
from ragstone.settings.retrieval import Fusion, Transform
from ragstone.settings.tree import Settings

logger = logging.getLogger(__name__)
Asked = Literal["query", "question", "topic", "claim"]
"""Kinds of text that a caller asks with."""
MOST_HITS = 1000
BOTH: tuple[Arm, ...] = ("dense", "lexical")
READ_BACK = "read_back"
EXAMPLES: dict[Asked, Remedy] = {
    "query": Remedy(Action.SEARCH, query="opening hours"),
    "question": Remedy(Action.ASK, question="When does the harbour open?"),
    "topic": Remedy(Action.RESEARCH, topic="harbour fees"),
    "claim": Remedy(Action.VERIFY, claim="The harbour opens at six."),
}
Untransformed = Literal["none"]
"""The strategy of a query that is searched for as it is."""
SOON_READ = 30_000
"""Characters that are read within two milliseconds: handing less to a thread takes longer than it spares others."""
T = TypeVar("T", bound=str)
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query and everything that shapes its result."""

    query: str
    k: int
    mode: Mode
    arms: Arm
    fusion: Fusion
    candidates: int
    min_score: float = 0.0
    min_relevance: float = 0.0
    where: Filter | None = None
    strategy: Transform | Untransformed | None = None
    """The one transform to use in place of those of the settings, or none of them."""
    reranking: bool = True
    """False keeps the order in which passages were found."""


def search_request(settings: Settings, query: SearchQuery) -> SearchRequest:
    """Return what was asked for, checked; the settings say the rest."""
    retrieval = settings.retrieval
    return SearchRequest(
        query=checked_query(query.text, settings.limits.query_chars),
        k=checked_count("k", retrieval.k if query.k is None else query.k),
        mode=checked_choice("mode", query.mode or retrieval.mode, get_args(Mode)),
        arms=checked_choice("arms", query.arms or retrieval.arms, get_args(Arm)),
        fusion=checked_choice("fusion", query.fusion or retrieval.fusion, get_args(Fusion)),
        candidates=retrieval.candidates,
        min_score=retrieval.min_score if query.min_score is None else query.min_score,
        min_relevance=checked_share(
            "min_relevance", retrieval.min_relevance if query.min_relevance is None else query.min_relevance
        ),
        where=None if query.where is None else parse_filter(query.where),
        strategy=checked_strategy(query.strategy),
    )


def checked_query(query: object, limit: int | None, what: Asked = "query") -> str:
    """Return the text without surrounding white space, or raise an error that names the problem."""
    if not isinstance(query, str):
        raise InputError(f"the {what} is no text but {type(query).__name__}", remedy=EXAMPLES[what])
    text = query.replace("\x00", " ").encode("utf-8", "replace").decode().strip()
    if not text:
        raise InputError(f"the {what} is empty", remedy=EXAMPLES[what])
    if limit is not None and len(text) > limit:
        raise InputError(f"the {what} has {len(text)} characters; at most {limit} are allowed")
    return text


def checked_strategy(name: str | None) -> Transform | Untransformed | None:
    """Return a transform by name, or raise an error that lists them; None stays None."""
    allowed = (*get_args(Transform), *get_args(Untransformed))
    return None if name is None else cast("Transform | Untransformed", checked_choice("strategy", name, allowed))


def checked_count(name: str, value: int, most: int = MOST_HITS) -> int:
    """Return a number of results to return, or raise an error that gives the range."""
    if not 1 <= value <= most:
        raise InputError(f"{name} is {value}; it must be from 1 to {most}")
    return value


def checked_share(name: str, value: float) -> float:
    """Return a number from 0 to 1, or raise an error that says so."""
    if not 0 <= value <= 1:
        raise InputError(f"{name} is {value}; it must be from 0 to 1")
    return value


def checked_choice(name: str, value: T, allowed: tuple[str, ...]) -> T:
    """Return the value, or raise an error that lists the allowed ones."""
    if value not in allowed:
        raise InputError(f"{name} is {value!r:.40}; it must be one of: {', '.join(allowed)}")
    return value


def require_an_answer(arms: Arm, result: SearchResult) -> SearchResult:
    """Return the result; raise `SearchFailed` if it is empty because every arm failed, or reading what was found."""
    asked = BOTH if arms == "hybrid" else (arms,)
    said = dict(note.split(": ", 1) for note in result.degraded if ": " in note)
    if result.hits or result.web or result.records:
        return result
    if READ_BACK in said:
        raise SearchFailed(
            f"passages were found and could not be read: {said[READ_BACK]}", remedy=Remedy(Action.CHECK_STORES)
        )
    if not all(arm in said for arm in asked):
        return result
    other = {"dense": "lexical", "lexical": "dense"}
    remedy = Remedy(Action.CHECK_STORES, **({"arms": other[arms]} if arms in other else {}))
    raise SearchFailed(f"the search could not be done: {said[asked[0]]}", remedy=remedy)


DEADLINES_MS: dict[Mode, float] = {"fast": 200.0, "balanced": 500.0, "thorough": 2000.0}
HARD_SECONDS = 2.0
KEPT_FOR_READING = 0.1
"""Share of the hard limit that no arm may use: what was found has to be read as well."""
KEPT_FOR_PACKING = 0.05
"""Share of the deadline that reranking may not use: what it ranked has to be packed as well."""
COLD_TIMES = 5
"""The factor by which the first search of a kb may take longer, because it may have to bring an index into memory."""


@dataclass
class StageSpan:
    """A running stage: its counts, and the part of its work that it skipped."""

    entered: int = 0
    left: int = 0
    skipped: str = ""


class Recorder:
    """Collects the stages of one search and keeps its clock: a deadline for what is optional, a hard limit for all."""

    def __init__(self, mode: Mode, seconds: float = HARD_SECONDS) -> None:
        self._started = time.perf_counter()
        self._excused: list[tuple[float, float]] = []
        self._hard = seconds * 1000
        self._limit = min(DEADLINES_MS[mode], self._hard)
        self.stages: list[Stage] = []
        self.degraded: list[str] = []

    @contextmanager
    def stage(self, name: str, entered: int = 0) -> Iterator[StageSpan]:
        """Time a stage; it is recorded also when it fails."""
        span = StageSpan(entered)
        started = time.perf_counter()
        try:
            yield span
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.stages.append(Stage(name, round(spent, 3), span.entered, span.left, span.skipped))

    def skip(self, name: str, entered: int, reason: str) -> None:
        """Record a stage that did not run, and why."""
        self.stages.append(Stage(name, 0.0, entered, entered, reason))

    def degrade(self, note: str) -> None:
        """Name a thing that could not be done, once."""
        if note not in self.degraded:
            self.degraded.append(note)

    def is_degraded(self, stage: str) -> bool:
        """Return whether a stage is named in `degraded`."""
        return any(note.startswith(f"{stage}: ") for note in self.degraded)

    def excuse(self, ms: float) -> None:
        """Do not count the last `ms` against the deadline: they went into loading a model or an index.

        Arms load side by side: what two of them took at the same time is excused once.
        """
        end = self.elapsed_ms
        start = end - ms
        while self._excused and self._excused[-1][1] > start:
            start = min(start, self._excused.pop()[0])
        self._excused.append((start, end))

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    @property
    def left_ms(self) -> float:
        """Return the time left for optional stages."""
        return self._limit - self._spent_ms

    @property
    def rerank_ms(self) -> float:
        """Return the time left for reranking, so that what it ranked can be packed within the deadline."""
        return self._limit * (1 - KEPT_FOR_PACKING) - self._spent_ms

    @property
    def search_seconds(self) -> float:
        """Return the time left for an arm before it is given up."""
        return max(self._hard * (1 - KEPT_FOR_READING) - self._spent_ms, 0.0) / 1000

    @property
    def cold_seconds(self) -> float:
        """Return the time for an arm whose index may have to be loaded first."""
        return COLD_TIMES * self._hard / 1000

    @property
    def read_seconds(self) -> float:
        """Return the time left before the search ends with what it has."""
        return max(self._hard - self._spent_ms, 0.0) / 1000

    @property
    def _spent_ms(self) -> float:
        return self.elapsed_ms - sum(end - start for start, end in self._excused)


@dataclass(slots=True)
class SearchContext:
    """The tenant, kb, request and clock of one search."""

    tenant: str
    kb: KnowledgeBase
    request: SearchRequest
    record: Recorder
    unrelated: float | None = None
    """The cosine to the query of text that has nothing to do with it; None until a model has embedded the query."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate with its fused score, and its raw score and rank in each arm that found it."""

    chunk_id: str
    score: float
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A fused candidate together with the chunk it names."""

    fused: Fused
    chunk: LiveChunk

    @property
    def score(self) -> float:
        return self.fused.score


@dataclass(frozen=True, slots=True)
class Variants:
    """The texts that are searched for in place of a query."""

    query: str
    """The query itself; passages are always reranked against this."""
    rewritten: str
    """The text that the result shows as `rewritten_query`."""
    dense: tuple[str, ...]
    """Texts whose vectors are searched with, the main one first."""
    lexical: tuple[str, ...]
    """Texts that are matched by word, the main one first."""
    notes: tuple[str, ...] = ()
    """Transforms that failed, such as "rewrite: no LLM"."""

    @classmethod
    def of(cls, query: str) -> Variants:
        """Return the query alone, as it was asked."""
        return cls(query, query, (query,), (query,))


MOST_WARM = 10_000


class WarmNames:
    """Names of stores and models that answered once; the first answer may take longer, to open a file or an index."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Remember that it has answered."""
        if len(self._names) >= MOST_WARM:
            self._names.clear()
        self._names.add(name)


class FirstReads:
    """Limits the reads before a search begins: there is no result without them, so a timeout is an error."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._warm = WarmNames()

    @asynccontextmanager
    async def within(self, tenant: str, what: str) -> AsyncIterator[None]:
        """Raise `StoreBusy` when the block does not end in time; the first of its kind has longer."""
        name = f"{what} {tenant}"
        seconds = self._seconds if name in self._warm else COLD_TIMES * self._seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StoreBusy(
                f"the {what} of tenant '{tenant}' could not be read within {seconds:g} s",
                remedy=Remedy(Action.CHECK_STORES),
            ) from error
        self._warm.add(name)


@asynccontextmanager
async def degrade_on_timeout(record: Recorder, stage: str, seconds: float) -> AsyncIterator[None]:
    """End a stage that is out of time or whose store is busy, and name it in `degraded`."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        reason = "out of time"
    except StoreBusy as error:
        reason = str(error)
    else:
        return
    logger.warning("searching without %s: %s", stage, reason)
    record.degrade(f"{stage}: {reason}")


async def compute(work: Callable[P, R], much: bool, /, *given: P.args, **named: P.kwargs) -> R:
    """Return what the work makes of the rest; where that is much, it is done beside the event loop."""
    return await asyncio.to_thread(work, *given, **named) if much else work(*given, **named)
