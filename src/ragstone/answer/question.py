"""The questions that one question is made of, each as it would be asked by itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from ragstone.core.results import SearchResult
from ragstone.core.types import Hit
from ragstone.language.analyzer import STOP_WORDS, analyze, analyze_query
from ragstone.language.grammar import Token, is_known_verb, tokenize
from ragstone.language.names import find_first_name
from ragstone.language.relevance import ASKING, asked_terms

Search = Callable[[str], Awaitable[SearchResult]]
Passages = Callable[[SearchResult], Sequence[Hit]]
_ASKS = re.compile(
    r"(?:(?:in|on|at|by|for|from|to|with|of|under|until|since)\s)?(?:how|what|when|where|why|who|whom|whose|which"
    r"|is|are|was|were|do|does|did|can|could|should|will|would|has|have)\b",
    re.I,
)
_OR = re.compile(r"\sor\s", re.I)
_POINTING = re.compile(r"\b(?:it|they|them|he|she|him|her(?!\s\w)|this|these|those)\b", re.I)
_OWNING = re.compile(r"\b(?:its|their|his|her)\b", re.I)


@dataclass(frozen=True, slots=True)
class Part:
    """A question within a question, the passages found for it, and what could not be done."""

    question: str
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    shared: frozenset[str] = frozenset()
    """Its terms that other parts have too: a sentence with only these is about the topic, not about this part."""


class AnsweredParts:
    """The parts of a question that have been answered, and the sentences that answer them."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._said: set[str] = set()
        self._answered: set[str] = set()

    @property
    def open_questions(self) -> tuple[str, ...]:
        """Return the parts without an answer; none where the question as a whole has none."""
        open_parts = [part.question for part in self._parts if part.question not in self._answered]
        return tuple(open_parts) if self._answered else ()

    def is_new(self, part: Part, sentence: str) -> bool:
        """Return whether a sentence is new for a part; one said before must have words that this part adds."""
        new = sentence not in self._said
        if new or self._adds_to(part, sentence):
            self._answered.add(part.question)
        self._said.add(sentence)
        return new

    def _adds_to(self, part: Part, sentence: str) -> bool:
        before = self._parts[: self._parts.index(part)]
        known = {term for earlier in before for term in analyze(earlier.question)}
        own = set(analyze(part.question)) - known - ASKING - STOP_WORDS
        return not own or not own.isdisjoint(analyze(sentence))


def split_question(question: str, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a question with their pronouns resolved; empty if they are not separate questions.

    What is asked with "or" is one question: its parts exclude each other.
    """
    if _OR.search(question) or not all(_ASKS.match(part) for part in parts):
        return ()
    whole: list[str] = []
    topic = ""
    for part in parts:
        whole.append(insert_topic(part, topic))
        topic = find_topic(whole[-1]) or topic
    return tuple(whole)


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


def is_question(question: str) -> bool:
    """Return whether it begins as a question does."""
    return _ASKS.match(question) is not None


def points_back(question: str) -> bool:
    """Return whether a word in it stands for something that was named before."""
    return bool(_POINTING.search(question) or _OWNING.search(question))


def drop_repeats(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Return the hits in order, without those whose passage came before."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(hit.chunk_id, hit)
    return tuple(first.values())


def insert_topic(part: str, topic: str) -> str:
    """Return the part with the topic in place of the first word that points back to it."""
    if not topic:
        return part
    replaced = _POINTING.sub(lambda _: topic, part, count=1)
    return replaced if replaced != part else _OWNING.sub(lambda _: f"{topic}'s", part, count=1)


def find_topic(question: str) -> str:
    """Return what a question is about: a name in it, or the first noun with its article."""
    if name := find_first_name(question):
        return name
    words = tokenize(question)
    start = next((n for n, word in enumerate(words) if word.kind == "determiner"), None)
    if start is None:
        return ""
    end = next((n for n in range(start + 1, len(words)) if _ends_a_noun(words[n])), len(words))
    return question[words[start].start : words[end - 1].end] if end > start + 1 else ""


def _ends_a_noun(word: Token) -> bool:
    return word.kind not in ("word", "s", "name", "number") or is_known_verb(word.word)


ENOUGH_WORDS = 3
"""Words with a meaning of their own that a question has which needs nothing said before."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The texts to search for and to answer in place of a question."""

    search: str
    question: str
    alone: bool = True
    """True if it is the question itself."""


def resolve_follow_up(question: str, earlier: Sequence[str], most_chars: int) -> FollowUp:
    """Resolve a question that follows earlier ones, oldest first.

    "it" and the like are replaced by what an earlier question was about. Else a few words that are no question of their
    own ("And on Sundays?") are searched for together with the last one that is, and answered by themselves.
    """
    basis, told = "", FollowUp(question, question)
    for asked in (*earlier, question):
        told = _resolve(asked, basis, most_chars) if basis and _is_dependent(asked) else FollowUp(asked, asked)
        if told.alone or points_back(asked):
            basis = told.question
    return told


def _resolve(question: str, basis: str, most_chars: int) -> FollowUp:
    pointed = insert_topic(question, find_topic(basis)) if points_back(question) else question
    joined = f"{basis.rstrip(' ?!.')} {question}"
    if len(max(joined, pointed, key=len)) > most_chars:
        return FollowUp(question, question)
    if pointed != question:
        return FollowUp(pointed, pointed, alone=False)
    own = _telling_terms(question) and not points_back(question)
    # Answered by its own words where it has any: a sentence about the one before would be found as well.
    return FollowUp(joined, question if own else joined, alone=False)


def _is_dependent(question: str) -> bool:
    told = len(_telling_terms(question))
    return points_back(question) or not told or (told < ENOUGH_WORDS and not is_question(question))


def _telling_terms(question: str) -> set[str]:
    return {term for term in analyze_query(question) if term not in ASKING and term not in STOP_WORDS}
