"""Under which condition a sentence says something, and whether a claim keeps it, in whatever words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from ragstone.answer.verify.polarity import denials
from ragstone.core.analyzer import analyze

_SOURCE = re.compile(
    r"(?<!even )(?<!as )(?<!only )\bif\b"
    r"|\b(?:unless|provided that|providing|in case|as long as|on condition|otherwise)\b",
    re.I,
)
_CLAIM = re.compile(
    r"(?<!even )(?<!as )\b(?:if|unless|when|whenever|where|once|while|provided(?: that)?|providing|in case(?: of)?"
    r"|as long as|on condition(?: that)?|in the event(?: of)?|with|on|upon|after|for|without|otherwise)\b",
    re.I,
)
_DENYING = ("unless", "without")
_ANY = re.compile(r"\b(?:an?|any|every|each)\s(?P<what>(?:[\w'’-]{1,30}\s?){1,4})", re.I)
"""A thing that is told apart by its state: "a full disk" is a disk, if it is full."""
_END = re.compile(r"[,;:.!?](?:\s|$)|\s(?:then|but)\s", re.I)
_KEPT = 0.6
"""Share of a condition's terms that its other wording must have."""


MOST = 12
"""Conditions of one text that are read; a sentence of more states nothing that could be told apart."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The terms of a condition, and whether they must not be so."""

    terms: frozenset[str]
    denied: bool


def condition_dropped(claim: str, sentence: str) -> bool:
    """Whether a sentence says something under a condition that the claim leaves out, or turns round."""
    stated = _conditions(sentence, _SOURCE)
    if not stated:
        return False
    kept = [*_conditions(claim, _CLAIM), *_states(claim)]
    return len(stated) == MOST or any(not any(_same(mine, one) for mine in kept) for one in stated)


def _conditions(text: str, marks: re.Pattern[str]) -> list[Condition]:
    found = []
    for mark in islice(marks.finditer(text), MOST):
        end = _END.search(text, mark.end())
        words = text[mark.end() : end.start() if end else len(text)]
        denied = (mark.group().lower() in _DENYING) != bool(len(denials(words)) % 2)
        found.append(Condition(_terms(words), denied))
    return found


def _states(claim: str) -> list[Condition]:
    return [Condition(_terms(match["what"]), False) for match in _ANY.finditer(claim)]


def _terms(words: str) -> frozenset[str]:
    return frozenset(analyze(words)) if words.strip(" ,.;:") else frozenset()


def _same(mine: Condition, theirs: Condition) -> bool:
    """Whether one is the other in other words; "otherwise" points back and has none of its own."""
    shared = len(mine.terms & theirs.terms)
    return mine.denied == theirs.denied and shared >= _KEPT * len(theirs.terms)
