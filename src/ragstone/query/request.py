"""A checked search request, and the checks of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar, cast, get_args

from ragstone.core.errors import InputError, SearchFailed
from ragstone.core.filters import Filter, parse_filter
from ragstone.core.queries import Arm, SearchQuery
from ragstone.core.remedies import Action, Remedy
from ragstone.core.results import SearchResult
from ragstone.core.types import Mode
from ragstone.settings.retrieval import Fusion, Transform
from ragstone.settings.tree import Settings

Asked = Literal["query", "question", "topic", "claim"]
"""Kinds of text that a caller asks with."""
MOST_HITS = 1000
EXAMPLES: dict[Asked, Remedy] = {
    "query": Remedy(Action.SEARCH, query="opening hours"),
    "question": Remedy(Action.ASK, question="When does the harbour open?"),
    "topic": Remedy(Action.RESEARCH, topic="harbour fees"),
    "claim": Remedy(Action.VERIFY, claim="The harbour opens at six."),
}
T = TypeVar("T", bound=str)


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
    where: Filter | None = None
    strategy: Transform | None = None
    """The one transform to use in place of those of the settings."""


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
        where=parse_filter(query.where),
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


def checked_strategy(name: str | None) -> Transform | None:
    """Return a transform by name, or raise an error that lists them; None stays None."""
    return None if name is None else cast("Transform", checked_choice("strategy", name, get_args(Transform)))


def checked_count(name: str, value: int, most: int = MOST_HITS) -> int:
    """Return a number of results to return, or raise an error that gives the range."""
    if not 1 <= value <= most:
        raise InputError(f"{name} is {value}; it must be from 1 to {most}")
    return value


def checked_choice(name: str, value: T, allowed: tuple[str, ...]) -> T:
    """Return the value, or raise an error that lists the allowed ones."""
    if value not in allowed:
        raise InputError(f"{name} is {value!r:.40}; it must be one of: {', '.join(allowed)}")
    return value


BOTH: tuple[Arm, ...] = ("dense", "lexical")


def require_an_answer(arms: Arm, result: SearchResult) -> SearchResult:
    """Return the result; raise `SearchFailed` if every arm failed and no other source found anything."""
    asked = BOTH if arms == "hybrid" else (arms,)
    said = dict(note.split(": ", 1) for note in result.degraded if ": " in note)
    if result.hits or result.web or result.records or not all(arm in said for arm in asked):
        return result
    other = {"dense": "lexical", "lexical": "dense"}
    remedy = Remedy(Action.CHECK_STORES, **({"arms": other[arms]} if arms in other else {}))
    raise SearchFailed(f"the search could not be done: {said[asked[0]]}", remedy=remedy)
