"""A question that leans on those before it, as it would be asked by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.answer.evidence import ASKING
from ragstone.answer.question import asks, points_back, topic_of, with_topic
from ragstone.language.analyzer import STOP_WORDS, analyze_query

ENOUGH_WORDS = 3
"""Words with a meaning of their own that a question has which needs nothing said before."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What is searched for, and what is answered, in place of a question."""

    search: str
    question: str
    alone: bool = True
    """Whether it is the question itself."""


def follow_up(question: str, earlier: Sequence[str], most_chars: int) -> FollowUp:
    """A question after earlier ones, oldest first.

    "it" and the like are replaced by what an earlier question was about. Else a few words that are no question of their
    own ("And on Sundays?") are searched for together with the last one that is, and answered by themselves.
    """
    basis, told = "", FollowUp(question, question)
    for one in (*earlier, question):
        told = _resolved(one, basis, most_chars) if basis and _leans(one) else FollowUp(one, one)
        if told.alone or points_back(one):
            basis = told.question
    return told


def _resolved(question: str, basis: str, most_chars: int) -> FollowUp:
    pointed = with_topic(question, topic_of(basis)) if points_back(question) else question
    joined = f"{basis.rstrip(' ?!.')} {question}"
    if len(max(joined, pointed, key=len)) > most_chars:
        return FollowUp(question, question)
    if pointed != question:
        return FollowUp(pointed, pointed, alone=False)
    own = _telling(question) and not points_back(question)
    # Answered by its own words where it has any: a sentence about the one before would be found as well.
    return FollowUp(joined, question if own else joined, alone=False)


def _leans(question: str) -> bool:
    told = len(_telling(question))
    return points_back(question) or not told or (told < ENOUGH_WORDS and not asks(question))


def _telling(question: str) -> set[str]:
    return {term for term in analyze_query(question) if term not in ASKING and term not in STOP_WORDS}
