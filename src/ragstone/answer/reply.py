"""A model's reply turned into plain sentences and the passage numbers they cite; the rest is left behind."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragstone.answer.plain import plain, strip_hidden
from ragstone.answer.prompt import DECLINED
from ragstone.core.sentences import sentence_spans

_MARK = re.compile(
    r"[\[【]\s{0,2}(?:(?:passage|source|citation)s?\s{0,2}#?|\^)?\s{0,2}"
    r"\d{1,6}(?:\s{0,2}(?:,|;|&|and|-|–)\s{0,2}\d{1,6}){0,20}\s{0,2}[\]】](?!\()",
    re.I,
)
_MARKS_BEHIND_STOP = re.compile(rf"([.!?。！？][\"'”’)]?)[ \t]*((?:{_MARK.pattern}[ \t]*)+)", re.I)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.I | re.S)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.M)
_EMPHASIS = re.compile(r"\*\*|__(?=\W|$)|(?<!\w)__|`")
_SPACE_BEFORE_STOP = re.compile(r"\s+(?=[.,;:!?。！？](?:\W|$))")


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence without its marks, and the numbers they held; `raw` is what the model wrote."""

    text: str
    numbers: tuple[int, ...]
    raw: str


def declines(reply: str) -> bool:
    """Whether the model says that the passages hold no answer."""
    words = re.sub(r"[^a-z ]", "", _THOUGHT.sub("", reply).lower()).split()
    return words == DECLINED.lower().split()


def read_reply(reply: str) -> list[CitedSentence]:
    """The sentences of a reply in order, with and without citations."""
    text = _FENCE.sub("", _THOUGHT.sub("", strip_hidden(reply)))
    # "It stops. [2]" cites for the sentence before: the marks move in front of its stop.
    text = _MARKS_BEHIND_STOP.sub(r" \2\1 ", text)
    return [_cited(text[start:end]) for start, end in sentence_spans(text)]


def _cited(raw: str) -> CitedSentence:
    numbers = [int(digits) for mark in _MARK.findall(raw) for digits in re.findall(r"\d+", mark)]
    bare = _EMPHASIS.sub("", _MARK.sub("", raw))
    return CitedSentence(_SPACE_BEFORE_STOP.sub("", plain(bare)), tuple(dict.fromkeys(numbers)), raw)
