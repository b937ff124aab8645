"""The sentences of a text that state something: headings, questions, code and rows of tables do not."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragstone.language.grammar import first_verb, tokenize
from ragstone.language.sentences import sentence_spans

Span = tuple[int, int]
_CLOSING = r"[\"'”’»)\]}*_`」』）]*$"
_STOPS = re.compile(rf"[.!…。！｡．।۔]{_CLOSING}")
_ASKS = re.compile(rf"[?？؟]{_CLOSING}")
_MARKS_BEFORE = re.compile(r"[ \t>]*(?:#{1,6}[ \t]|\|)")
"""On the line of a sentence: it is a heading or a row of a table."""
_UNDERLINED = re.compile(r"\n[ \t]*(?:=+|-+|~+|\^+)[ \t]*$")
_FENCE = re.compile(r"^[ \t>]{0,12}(?:```|~~~)", re.M)
_FRONT_MATTER = re.compile(r"---\n.*?\n---[ \t]*(?:\n|$)", re.S)
_LINE_END = re.compile("\n")
_PROMPT = re.compile(r"(?:\$|>>>|#!|C:\\)")
_TOPIC = re.compile(r"(?:how|what|when|where|why|which|who|whether)\b", re.I)
"""Words that a title begins with, and no statement."""
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_FEWEST_WORDS, _FEWEST_WITHOUT_STOP, _FEWEST_LETTERS = 3, 4, 6
_MOST_READ = 400
"""Characters of a sentence that a verb is looked for in."""


@dataclass(frozen=True, slots=True)
class StatedSentence:
    """A sentence that states something: `text[start:end]`, in a line of the text."""

    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class StatedSentences:
    """The statements of a text, and how many other sentences it has."""

    found: tuple[StatedSentence, ...]
    skipped: int


def find_statements(text: str, left_out: Sequence[Span] = ()) -> StatedSentences:
    """Return where a text states something; `left_out` are parts known to be headings, code or tables."""
    lines = [0, *(match.end() for match in _LINE_END.finditer(text))]
    outside = _merge([*left_out, *_find_code(text)])
    starts = [start for start, _ in outside]
    found: list[StatedSentence] = []
    spans = sentence_spans(text)
    for start, end in spans:
        line, part = bisect_right(lines, start), bisect_right(starts, start)
        is_read = part == 0 or start >= outside[part - 1][1]
        if is_read and not _MARKS_BEFORE.match(text, lines[line - 1], start + 1) and _states(text[start:end]):
            found.append(StatedSentence(start, end, line))
    return StatedSentences(tuple(found), len(spans) - len(found))


def _merge(spans: Sequence[Span]) -> list[Span]:
    """Return the spans in order, those that overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _find_code(text: str) -> Iterator[Span]:
    """Yield where fenced code and the settings above a page stand."""
    if front := _FRONT_MATTER.match(text):
        yield front.span()
    fences = [match.start() for match in _FENCE.finditer(text)]
    for opened, closed in zip(fences[::2], [*fences[1::2], len(text)], strict=False):
        yield opened, closed + 1


def _states(sentence: str) -> bool:
    """Return whether a sentence is neither a question nor a title nor a command."""
    if _ASKS.search(sentence[-20:]) or _UNDERLINED.search(sentence[-200:]) or _PROMPT.match(sentence):
        return False
    if not _LATIN.search(sentence):
        return sum(map(str.isalpha, sentence)) >= _FEWEST_LETTERS  # not all languages put spaces, or stops
    words = len(sentence.split())
    if _STOPS.search(sentence[-20:]):
        return words >= _FEWEST_WORDS
    # Without a stop it may be a title: one that has a verb is a statement, as in a list.
    has_verb = words >= _FEWEST_WITHOUT_STOP and first_verb(tokenize(sentence[:_MOST_READ])) is not None
    return has_verb and not _TOPIC.match(sentence)
