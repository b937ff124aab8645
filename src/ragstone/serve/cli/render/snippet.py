"""The part of a passage that is worth showing, with the words of the query marked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragstone.language.analyzer import analyze, analyze_query
from ragstone.serve.cli.render.output import one_line

MARKUP = re.compile(r"^#{1,6} |^```.*$|\*\*|`", re.MULTILINE)
WORD = re.compile(r"[^\W_](?:[\w.'’/-]*[^\W_])?")
Span = tuple[int, int]
Mark = tuple[Span, set[str]]
"""The place of a word, and the terms of the query that it has."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A short text and where words of the query stand in it."""

    text: str
    marks: tuple[Span, ...]


MOST_MARKS = 500
"""Words of the query in a passage; later ones are neither counted nor marked."""


def snippet(passage: str, query: str, heading: str = "", width: int = 240) -> Snippet:
    """Return the window of about `width` characters that holds most of the words of the query, and most often.

    `heading` is shown elsewhere, so it is left out when the passage begins with it.
    """
    first, _, rest = MARKUP.sub("", passage).strip().partition("\n")
    whole = one_line(rest if rest.strip() and first.strip() == heading else f"{first} {rest}")
    marks = _marks(whole, query)[:MOST_MARKS]
    start, end = _window(whole, marks, width)
    before, after = "… " if start else "", " …" if end < len(whole) else ""
    shift = len(before) - start
    inside = tuple((a + shift, b + shift) for (a, b), _ in marks if start <= a and b <= end)
    return Snippet(before + whole[start:end] + after, inside)


def _marks(text: str, query: str) -> list[Mark]:
    terms = set(analyze_query(query))
    found = ((match, terms.intersection(analyze(match.group()))) for match in WORD.finditer(text))
    return [(match.span(), shared) for match, shared in found if shared and not _by_a_letter(match[0], shared)]


def _by_a_letter(word: str, shared: set[str]) -> bool:
    """Return True when an identifier is like another one in single letters only: T-135 is not T-148."""
    return len(word) > 1 and any(char.isdigit() for char in word) and all(len(term) == 1 for term in shared)


def _window(text: str, marks: list[Mark], width: int) -> Span:
    if len(text) <= width:
        return 0, len(text)

    lead = width // 6

    def count_marks(start: int) -> tuple[int, int]:
        inside = [shared for (begin, end), shared in marks if start <= begin and end < start + width - lead]
        return len(set[str]().union(*inside)), len(inside)

    start = max([0, *(begin for (begin, _), _ in marks)], key=lambda at: (count_marks(at), -at))
    # Some words before the first mark make it readable; both ends are put where a word ends.
    start = max(0, min(start - lead, len(text) - width))
    if start:
        start = text.find(" ", start, start + width // 4) + 1 or start
    end = min(len(text), start + width)
    if end < len(text):
        cut = text.rfind(" ", start + width // 2, end)
        end = cut if cut > 0 else end
    return start, end
