"""What is asked of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from ragstone.core.errors import InputError
from ragstone.core.filters import Filter
from ragstone.core.settings import Fusion
from ragstone.core.types import Mode

Arm = Literal["hybrid", "dense", "lexical"]
MOST_HITS = 1000
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


def checked_query(query: str, limit: int) -> str:
    """The query without surrounding white space, or an error that says what is wrong with it."""
    text = query.replace("\x00", " ").encode("utf-8", "replace").decode().strip()
    if not text:
        raise InputError(
            "the query is empty", hint='type some words, such as: ragstone search "opening hours"'
        )
    if len(text) > limit:
        raise InputError(f"the query has {len(text)} characters; at most {limit} are allowed")
    return text


def checked_count(name: str, value: int, most: int = MOST_HITS) -> int:
    """A number of things to return, or an error that says what is allowed."""
    if not 1 <= value <= most:
        raise InputError(f"{name} is {value}; it must be from 1 to {most}")
    return value


def checked_choice(name: str, value: T, allowed: tuple[str, ...]) -> T:
    """One of a few words, or an error that lists them."""
    if value not in allowed:
        raise InputError(f"{name} is {value!r:.40}; it must be one of: {', '.join(allowed)}")
    return value
