"""False twins of true sentences: one word or number changed so that they say something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Change = Literal["negated", "number"]

_VERBS = "is|are|was|were|has|have|had|can|will|may|must|should|could|would|does|do|did"
_NEGATED = re.compile(rf"\b(?:(?P<verb>{_VERBS}) not|cannot)\b")
_AUXILIARY = re.compile(r"\b(?:is|are|was|were|can|will|may|must|should|could|would)\b(?! not\b)")
_NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,6}(?![\w:/-]|[.,]\d)")
_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "fifteen")
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
_SHIFT = 3


@dataclass(frozen=True)
class Pair:
    """A sentence and what it does not say."""

    original: str
    twin: str
    change: Change


def pairs(sentences: Iterable[str]) -> Iterator[Pair]:
    """Every twin that the sentences allow, each once."""
    for sentence in sentences:
        for twin in dict.fromkeys(negations(sentence)):
            yield Pair(sentence, twin, "negated")
        for twin in dict.fromkeys(other_numbers(sentence)):
            yield Pair(sentence, twin, "number")


def negations(sentence: str) -> Iterator[str]:
    """The sentence with a "not" taken out, or with one put behind an auxiliary verb."""
    for found in _NEGATED.finditer(sentence):
        yield _replaced(sentence, found, found["verb"] or "can")
    for found in _AUXILIARY.finditer(sentence):
        yield _replaced(sentence, found, f"{found.group()} not")


def other_numbers(sentence: str) -> Iterator[str]:
    """The sentence with another number in place of one of its own."""
    for found in _NUMBER.finditer(sentence):
        yield _replaced(sentence, found, str(int(found.group()) + _SHIFT))
    for found in _WORD.finditer(sentence):
        place = (_WORDS.index(found.group()) + _SHIFT) % len(_WORDS)
        yield _replaced(sentence, found, _WORDS[place])


def _replaced(sentence: str, found: re.Match[str], words: str) -> str:
    return sentence[: found.start()] + words + sentence[found.end() :]
