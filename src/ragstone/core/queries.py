"""The values that a search and a question are asked with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ragstone.core.types import Mode

if TYPE_CHECKING:
    from ragstone.settings.retrieval import Fusion

Arm = Literal["hybrid", "dense", "lexical"]


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
    strategy: str | None = None
    """The one transform (`rewrite`, `expand`, `hyde` …) to use in place of those of the settings."""
    web: bool | None = None
    """Search the web too, or not; None leaves it to `retrieval.routing`."""
    conversation: str | None = None
    """The name of a conversation, whose earlier turns the query may refer to."""
    kb: str | None = None


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
    strategy: str | None
