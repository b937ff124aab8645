"""A question that follows others: what it leans on, by its words alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragstone.language.questions import complete, insert_topic, is_question, lacks_subject, points_back, telling_terms
from ragstone.language.topics import find_topic, has_own_subject

ENOUGH_WORDS = 3
"""Words with a meaning of their own that words have which need nothing said before."""
Leaning = Literal["yes", "maybe", "no"]
_GOES_ON = re.compile(
    r"(?:and|but|so|then|or|also|otherwise|instead|what about|how about|what if|why not|anything else|what else)\b",
    re.I,
)
_SWAPS = re.compile(r"(?:and |but |so )?(?:what|how) about\s+\S", re.I)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The texts to search for and to answer in place of a question."""

    search: str
    question: str
    leaning: Leaning = "no"
    """`maybe` where the words do not tell: the texts are the question's own, and what is found has to decide."""
    basis: str = ""
    """The question that it leans on, or may lean on."""

    @property
    def alone(self) -> bool:
        return self.leaning != "yes"


def resolve_follow_up(question: str, earlier: Sequence[str], most_chars: int) -> FollowUp:
    """Resolve a question that follows earlier ones, oldest first.

    "it" and the like are replaced by what an earlier question was about. Else a few words that are no question of their
    own ("And on Sundays?") are searched for together with the last one that is, and answered by themselves.
    """
    basis, told = "", FollowUp(question, question)
    for asked in (*earlier, question):
        told = _resolve(asked, basis, most_chars)
        if told.alone or points_back(asked) or _SWAPS.match(asked):
            basis = told.question
    return told


def lean_on(question: str, topic: str) -> str:
    """Return a question with the topic that it leaves out."""
    return f"{question.rstrip(' ?!.')} ({topic})?"


def _resolve(question: str, basis: str, most_chars: int) -> FollowUp:
    leaning = _find_leaning(question) if basis else "no"
    if leaning != "yes":
        return FollowUp(question, question, leaning, basis if leaning == "maybe" else "")
    pointed = _fill_in(question, basis)
    joined = f"{basis.rstrip(' ?!.')} {question}"
    if len(max(joined, pointed, key=len)) > most_chars:
        return FollowUp(question, question)
    if pointed != question:
        return FollowUp(pointed, pointed, "yes", basis)
    own = telling_terms(question) and not points_back(question)
    # Answered by its own words where it has any: a sentence about the one before would be found as well.
    return FollowUp(joined, question if own else joined, "yes", basis)


def _fill_in(question: str, basis: str) -> str:
    if _SWAPS.match(question):
        return complete(question, basis, "")
    return insert_topic(question, find_topic(basis)) if points_back(question) else question


def _find_leaning(question: str) -> Leaning:
    told = len(telling_terms(question))
    if points_back(question) or lacks_subject(question) or _GOES_ON.match(question):
        return "yes"
    if not is_question(question):
        return "yes" if told < ENOUGH_WORDS else "no"
    return "maybe" if told <= ENOUGH_WORDS and not has_own_subject(question) else "no"
