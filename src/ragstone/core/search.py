"""Searches: queries and questions, what is found for them in a kb and on the web, and notes made on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from urllib.parse import urlsplit

from ragstone.core.answers import SITE
from ragstone.core.errors import InputError
from ragstone.core.ids import content_hash
from ragstone.core.types import Hit, Json, Mode, RouteKind

if TYPE_CHECKING:
    from ragstone.settings.retrieval import Fusion

Arm = Literal["hybrid", "dense", "lexical"]
QueryType = Literal["product", "service", "general"]
SourceKind = Literal["documents", "database", "internet"]
MOST_WEB_RESULTS = 20
WEB = "internet"
"""The source that web results name as theirs."""
WEB_ID = "web:"
"""The prefix of the chunk ids of web results; no chunk of a kb has such an id."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search; what is None is as the settings say."""

    text: str
    k: int | None = None
    mode: Mode | None = None
    where: Mapping[str, Any] | None = None
    """A filter in its JSON form."""
    arms: Arm | None = None
    fusion: Fusion | None = None
    min_score: float | None = None
    min_relevance: float | None = None
    strategy: str | None = None
    """The one transform (`rewrite`, `expand`, `hyde` …) to use in place of those of the settings; `none` for none."""
    web: bool | None = None
    """Search the web too, or not; None leaves it to `retrieval.routing`."""
    conversation: str | None = None
    """The name of a conversation, whose earlier turns the query may refer to."""
    kb: str | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question that was asked before, and the answer to it; empty where there was none."""

    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question; what is None is as the settings say."""

    text: str
    k: int | None = None
    """The number of passages to answer from."""
    mode: Mode | None = None
    where: Mapping[str, Any] | None = None
    """A filter in its JSON form."""
    web: bool | None = None
    """Search the web too, or not; None leaves it to `retrieval.routing`."""
    conversation: str | None = None
    """The name of a conversation, whose earlier turns the question may refer to."""
    kb: str | None = None
    earlier: Sequence[Exchange] = ()
    """The questions and answers before it, oldest first, where the caller keeps them and no conversation does."""


class QuestionOptions(TypedDict, total=False):
    """The fields of a `Question` besides its text."""

    k: int | None
    mode: Mode | None
    where: Mapping[str, Any] | None
    web: bool | None
    conversation: str | None
    kb: str | None


class SearchOptions(QuestionOptions, total=False):
    """The fields of a `SearchQuery` besides its text."""

    arms: Arm | None
    fusion: Fusion | None
    min_score: float | None
    min_relevance: float | None
    strategy: str | None


@dataclass(frozen=True, slots=True)
class WebResult:
    """A page that a search engine found, and what it says of it."""

    title: str
    url: str
    snippet: str
    date: str = ""
    """When the page was published, as an ISO date; empty when nobody knows."""
    provider: str = ""

    @property
    def site(self) -> str:
        """The page's host without `www.`."""
        return (urlsplit(self.url).hostname or "").removeprefix("www.")


@dataclass(frozen=True, slots=True)
class WebFindings:
    """The results of a web search. `problem` says why some are missing."""

    query: str
    results: tuple[WebResult, ...]
    cached: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class KeptResults:
    """Results of an earlier search, and whether they are still as good as new."""

    results: tuple[WebResult, ...]
    is_fresh: bool
    found_at: datetime | None = None
    """When the engine gave them."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The work of one stage. `skipped` says what it did not do and why; empty when it did all."""

    stage: str
    ms: float
    entered: int
    left: int
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """The kind of a query, the names and dates in it, and the sources to search."""

    type: QueryType
    entities: tuple[str, ...]
    """Names, as the tenant's own words or the query spell them."""
    dates: tuple[str, ...]
    """Days and times, as the query spells them."""
    sources: tuple[SourceKind, ...]
    """The sources to search at once; empty when nothing has to be looked for."""
    mode: Mode | None = None
    """The search mode; None leaves it as it is."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, and how they were found."""

    query: str
    rewritten_query: str
    mode: Mode
    hits: tuple[Hit, ...]
    trace: tuple[Stage, ...]
    degraded: tuple[str, ...]
    took_ms: float
    route: RouteKind = "retrieve"
    """The route of the search: nowhere, in the kb, or on the web as well."""
    web: tuple[WebResult, ...] = ()
    """The results of the web, where it was asked."""
    records: tuple[Hit, ...] = ()
    """Rows of databases as they are now, where these were asked."""
    analysis: QueryAnalysis | None = None
    """The kind that the query was taken for, where that decided which sources were asked."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The place of one document at each stage of a search, and the stage that lost it."""

    query: str
    document_id: str
    title: str
    found: bool
    lost_at: str
    reason: str
    stages: tuple[Mapping[str, Json], ...]


def no_web_search() -> InputError:
    """Return the error for a web search that is not configured."""
    return InputError(
        "no web search is set up",
        hint="set web.kind (searxng, brave, tavily, google, fixture) in ragstone.yaml, "
        "or in the environment: RAGSTONE_WEB__KIND=searxng RAGSTONE_WEB__URL=http://localhost:8080",
    )


def web_hits(results: Sequence[WebResult]) -> tuple[Hit, ...]:
    """Return the results as passages; those without a word are left out. Their score is their rank's."""
    return tuple(_hit(rank, result) for rank, result in enumerate(results, 1) if result.snippet)


def is_web(chunk_id: str) -> bool:
    """Return whether a passage comes from the web, not from a kb."""
    return chunk_id.startswith(WEB_ID)


def _hit(rank: int, result: WebResult) -> Hit:
    name = WEB_ID + content_hash(f"{result.url}\n{result.snippet}")[:32]
    return Hit(
        chunk_id=name,
        document_id=name,
        title=result.title or result.site,
        uri=result.url,
        section="",
        page=None,
        text=result.snippet,
        score=round(1 / (1 + rank), 6),
        scores={"web": float(rank)},
        metadata={"source": WEB, SITE: result.site, "date": result.date, "provider": result.provider},
        start=0,
        end=len(result.snippet),
    )


_notes: ContextVar[list[str] | None] = ContextVar("ragstone_notes", default=None)


@contextmanager
def collect_notes() -> Iterator[list[str]]:
    """Collect the notes of the block and of tasks that it starts, each once."""
    notes: list[str] = []
    before = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(before)


def add_note(text: str) -> None:
    """Add a note; outside of `collect_notes` it is dropped."""
    notes = _notes.get()
    if notes is not None and text not in notes:
        notes.append(text)
