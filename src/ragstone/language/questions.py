"""Questions: the parts that a compound one is made of, and one that refers to those asked before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.language.analyzer import STOP_WORDS, analyze_query
from ragstone.language.grammar import Token, is_known_verb, tokenize
from ragstone.language.names import find_first_name
from ragstone.language.relevance import ASKING

ENOUGH_WORDS = 3
"""Words with a meaning of their own that a question has which needs nothing said before."""
MOST_PARTS = 4
_LONGEST = 1000
_STARTS = r"(?:how|what|when|where|why|who|which|whose|is|are|do|does|did|can|could|should|will|would)"
_QUESTIONS = re.compile(r"(?<=\?)\s+")
_JOINED = re.compile(rf"(?:[;,]\s*+(?:and\s+)?|\s+(?:and|or)\s+)(?:also\s+)?(?={_STARTS}\b)|;\s+", re.I)
_VERSUS = re.compile(r"\s(?:vs\.?|versus|compared (?:to|with))\s", re.I)
_BETWEEN = re.compile(
    r"\b(?:differences?|comparison|relationship|similarit(?:y|ies)|connection|trade-?offs?) between\s", re.I
)
_COMPARE = re.compile(r"^(?:please\s)?(?:compare|contrast)\s", re.I)
_AND = re.compile(r"\s(?:and|with|to)\s", re.I)
_ASKS = re.compile(
    r"(?:(?:in|on|at|by|for|from|to|with|of|under|until|since)\s)?(?:how|what|when|where|why|who|whom|whose|which"
    r"|is|are|was|were|do|does|did|can|could|should|will|would|has|have)\b",
    re.I,
)
_OR = re.compile(r"\sor\s", re.I)
_POINTING = re.compile(r"\b(?:it|they|them|he|she|him|her(?!\s\w)|this|these|those)\b", re.I)
_OWNING = re.compile(r"\b(?:its|their|his|her)\b", re.I)


def decompose(query: str) -> tuple[str, ...]:
    """Return the two to four parts of a compound query, or nothing if it asks for one thing."""
    if len(query) > _LONGEST:
        return ()
    parts = _questions(query) or _split_comparison(query)
    kept = tuple(dict.fromkeys(part for part in map(_trim, parts) if _says_something(part)))
    return kept[:MOST_PARTS] if len(kept) > 1 else ()


def _questions(query: str) -> list[str]:
    """Split several questions one after another, or joined by "and how", "; "."""
    parts = [part for whole in _QUESTIONS.split(query) for part in _JOINED.split(whole)]
    return parts if len(parts) > 1 else []


def _split_comparison(query: str) -> list[str]:
    """Return the two sides of a comparison."""
    sides = _VERSUS.split(query, maxsplit=1)
    if len(sides) == 2:
        return sides
    frame = _BETWEEN.search(query) or _COMPARE.match(query)
    return _AND.split(query[frame.end() :], maxsplit=1) if frame else []


def _trim(part: str) -> str:
    return part.strip(" \t\r\n,;:.?!")


def _says_something(part: str) -> bool:
    return any(term not in STOP_WORDS for term in analyze_query(part))


def split_question(question: str) -> tuple[str, ...]:
    """Return the parts of a question with their pronouns resolved; empty if they are not separate questions.

    What is asked with "or" is one question: its parts exclude each other.
    """
    parts = decompose(question)
    if _OR.search(question) or not all(_ASKS.match(part) for part in parts):
        return ()
    whole: list[str] = []
    topic = ""
    for part in parts:
        whole.append(insert_topic(part, topic))
        topic = find_topic(whole[-1]) or topic
    return tuple(whole)


def is_question(question: str) -> bool:
    """Return whether it begins as a question does."""
    return _ASKS.match(question) is not None


def points_back(question: str) -> bool:
    """Return whether a word in it stands for something that was named before."""
    return bool(_POINTING.search(question) or _OWNING.search(question))


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
