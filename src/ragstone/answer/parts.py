"""The parts of a question: the passages found for each, and which of them are answered."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from ragstone.answer.quotes import Statement
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit
from ragstone.language.analyzer import STOP_WORDS, analyze
from ragstone.language.asked import find_asked_kind, names_people
from ragstone.language.relevance import ASKING, asked_terms

if TYPE_CHECKING:
    from ragstone.answer.extract import Extraction

Search = Callable[[str], Awaitable[SearchResult]]
Passages = Callable[[SearchResult], Sequence[Hit]]
MOST_NEAREST = 2
"""Statements that are quoted in place of an answer."""
_COLUMN = re.compile(r"(?:^|; )([^:;]{1,60}): ")
"""The name of a column in a row as an answer says it."""


async def _has_no_name(name: str) -> bool:
    return False


async def _has_none_waiting() -> int:
    return 0


class PassagePlace(NamedTuple):
    """The place of a passage: compression may leave several of one chunk."""

    chunk_id: str
    start: int
    end: int

    def holds(self, other: PassagePlace) -> bool:
        """Return whether another passage stands within this one."""
        return self.chunk_id == other.chunk_id and self.start <= other.start and other.end <= self.end


def place_of(hit: Hit) -> PassagePlace:
    """Return what tells a hit from all others of its kb."""
    return PassagePlace(hit.chunk_id, hit.start, hit.end)


@dataclass(frozen=True, slots=True)
class KbState:
    """The state of a knowledge base that a reply without an answer tells of; by default all that there is was found."""

    mentions: Callable[[str], Awaitable[bool]] = _has_no_name
    """Return whether any passage has a name."""
    count_waiting: Callable[[], Awaitable[int]] = _has_none_waiting
    """Return how many documents are still to be read or embedded."""


@dataclass(frozen=True, slots=True)
class Part:
    """A question within a question, the passages found for it, and what could not be done."""

    question: str
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    shared: frozenset[str] = frozenset()
    """Its terms that other parts have too: a sentence with only these is about the topic, not about this part."""


class AnsweredParts:
    """The parts of a question that have been answered, the sentences that answer them, and what the others lack."""

    def __init__(self, parts: Sequence[Part], notes: list[str] | None = None) -> None:
        self._parts = parts
        self._said: set[str] = set()
        self._answered: set[str] = set()
        self._extracted: dict[str, Extraction] = {}
        self.notes = [] if notes is None else notes

    @property
    def open_questions(self) -> tuple[str, ...]:
        """Return the parts without an answer; none where the question as a whole has none."""
        return tuple(part.question for part in self._open_parts) if self._answered else ()

    @property
    def nearest(self) -> tuple[Statement, ...]:
        """Return what comes near the question where no part of it is answered."""
        if self._answered:
            return ()
        most = max(1, MOST_NEAREST // len(self._parts))
        found = (statement for each in self._of_open_parts() for statement in each.nearest[:most])
        return tuple({statement.text: statement for statement in found}.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names in the open parts that none of their passages has."""
        return tuple(dict.fromkeys(name for each in self._of_open_parts() for name in each.missing))

    def keep(self, part: Part, extraction: Extraction) -> None:
        """Keep what was extracted for a part, in case that it stays open."""
        self._extracted[part.question] = extraction
        self.notes.extend(extraction.degraded)

    def is_new(self, part: Part, sentence: str) -> bool:
        """Return whether a sentence is new for a part; one said before must have words that this part adds."""
        new = sentence not in self._said
        if new or self._adds_to(part, sentence):
            self._answered.add(part.question)
        self._said.add(sentence)
        return new

    @property
    def _open_parts(self) -> list[Part]:
        return [part for part in self._parts if part.question not in self._answered]

    def _of_open_parts(self) -> list[Extraction]:
        return [self._extracted[part.question] for part in self._open_parts if part.question in self._extracted]

    def _adds_to(self, part: Part, sentence: str) -> bool:
        before = self._parts[: self._parts.index(part)]
        known = {term for earlier in before for term in analyze(earlier.question)}
        own = set(analyze(part.question)) - known - ASKING - STOP_WORDS
        if not own or not own.isdisjoint(analyze(sentence)):
            return True
        # "Owner: Platform" says who owns it, in another form of the word.
        asks_who = find_asked_kind(part.question) == "person"
        return asks_who and any(names_people(column[1]) for column in _COLUMN.finditer(sentence))


async def look_up(
    questions: Sequence[str], search: Search, passages: Passages, found: SearchResult
) -> tuple[Part, ...]:
    """Return each question with its own passages first, then those that were found for all of them."""
    results = await asyncio.gather(*map(search, questions))
    return tuple(
        Part(
            question,
            drop_repeats((*passages(result), *passages(found))),
            result.degraded,
            _shared_terms(question, questions),
        )
        for question, result in zip(questions, results, strict=True)
    )


def _shared_terms(question: str, questions: Sequence[str]) -> frozenset[str]:
    """Return the terms of a question that others of them have too."""
    others = {term for other in questions if other != question for term in asked_terms(other)}
    return frozenset(others.intersection(asked_terms(question)))


def drop_repeats(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Return the hits in order, without those that stand within one that came before."""
    kept: list[Hit] = []
    known: defaultdict[str, list[PassagePlace]] = defaultdict(list)
    for hit in hits:
        place = place_of(hit)
        if not any(earlier.holds(place) for earlier in known[hit.chunk_id]):
            known[hit.chunk_id].append(place)
            kept.append(hit)
    return tuple(kept)


def interleave(*found: Sequence[Hit]) -> Iterator[Hit]:
    """Yield the first hits of all searches, then the second ones, and so on."""
    for hits in zip_longest(*found):
        yield from (hit for hit in hits if hit is not None)
