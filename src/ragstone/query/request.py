"""What is asked of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragstone.core.errors import InputError
from ragstone.core.filters import Filter
from ragstone.core.settings import Fusion
from ragstone.core.types import Mode

Arm = Literal["hybrid", "dense", "lexical"]


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
