"""The part of a passage that is worth showing, with the words of the query marked."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from ragstone.core.analyzer import analyze, analyze_query
from ragstone.serve.cli.output import one_line

MARKUP = re.compile(r"^#{1,6} |^```.*$|\*\*|`", re.MULTILINE)
WORD = re.compile(r"[^\W_](?:[\w.'’/-]*[^\W_])?")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Snippet:
    """A short text and where words of the query stand in it."""

    text: str
    marks: tuple[Span, ...]


def snippet(passage: str, query: str, heading: str = "", width: int = 240) -> Snippet:
    """The window of about `width` characters that holds most words of the query.

    `heading` is shown elsewhere, so it is left out when the passage begins with it.
    """
    first, _, rest = MARKUP.sub("", passage).strip().partition("\n")
    whole = one_line(rest if rest.strip() and first.strip() == heading else f"{first} {rest}")
    marks = _marks(whole, query)
    start, end = _window(whole, marks, width)
    before, after = "… " if start else "", " …" if end < len(whole) else ""
    shift = len(before) - start
    inside = tuple((a + shift, b + shift) for a, b in marks if start <= a and b <= end)
    return Snippet(before + whole[start:end] + after, inside)


def _marks(text: str, query: str) -> list[Span]:
    terms = set(analyze_query(query))
    return [match.span() for match in WORD.finditer(text) if not terms.isdisjoint(analyze(match.group()))]


def _window(text: str, marks: list[Span], width: int) -> Span:
    if len(text) <= width:
        return 0, len(text)
    starts, ends = [mark[0] for mark in marks], [mark[1] for mark in marks]

    def held(start: int) -> int:
        return bisect_right(ends, start + width) - bisect_left(starts, start)

    start = max([0, *starts], key=lambda at: (held(at), -at))
    # Some words before the first mark make it readable; both ends are put where a word ends.
    start = max(0, min(start - width // 6, len(text) - width))
    if start:
        start = text.find(" ", start, start + width // 4) + 1 or start
    end = min(len(text), start + width)
    if end < len(text):
        cut = text.rfind(" ", start + width // 2, end)
        end = cut if cut > 0 else end
    return start, end
