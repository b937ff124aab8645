"""Cuts a span that is too large: at paragraphs, lines or sentences, then between words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ragstone.core.types import BlockKind
from ragstone.ingest.chunkers.boundaries import last_cut, next_word, skip_space, trim, word_end
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.ruler import Ruler
from ragstone.language.sentences import sentence_spans

Span = tuple[int, int]
Level = Callable[[str, int, int], Iterator[Span]]
"""Cuts a span of a text into trimmed parts that leave nothing but white space out."""
BY_LINE: frozenset[BlockKind] = frozenset(("code", "table"))
"""Kinds of blocks whose lines mean something: they are cut between them."""


def by_sentence(text: str, start: int, end: int) -> Iterator[Span]:
    """Sentences, each with the list or heading mark before it."""
    ends = (start + stop for _, stop in sentence_spans(text[start:end]))
    return _parts(text, start, end, ends)


def by_line(text: str, start: int, end: int) -> Iterator[Span]:
    """Lines with their indentation."""
    return _indented(text, start, by_separator("\n")(text, start, end))


def by_blank_line(text: str, start: int, end: int) -> Iterator[Span]:
    """Runs of lines that blank lines keep apart, with their indentation."""
    return _indented(text, start, by_separator("\n\n")(text, start, end))


def by_separator(separator: str) -> Level:
    """The level of one separator of the settings; `". "` means sentences, which know abbreviations."""
    if separator.strip() == ".":
        return by_sentence
    pattern = re.compile(re.escape(separator))

    def level(text: str, start: int, end: int) -> Iterator[Span]:
        return _parts(text, start, end, (match.end() for match in pattern.finditer(text, start, end)))

    return level


def separator_levels(separators: Iterable[str]) -> list[Level]:
    """The levels of the settings' separators; between words is where every cut ends anyway."""
    return [by_separator(separator) for separator in separators if separator.strip(" ")]


def levels_of(kind: BlockKind) -> Sequence[Level]:
    """How a block of this kind is cut when it is too large: rows and lines of code stay whole."""
    return (by_line,) if kind in BY_LINE else (by_sentence,)


def cut(text: str, ruler: Ruler, span: Span, limits: Limits, levels: Sequence[Level]) -> list[Span]:
    """Parts that fit, cut at the first level that makes them fit, between words at last."""
    if ruler.size(*span) <= limits.size:
        return [span]
    if not levels:
        # Smaller than a chunk by the overlap, so that what is repeated still fits.
        return list(windows(text, ruler, span, limits.size - limits.overlap, 0))
    parts: list[Span] = []
    for part in levels[0](text, *span):
        parts.extend(cut(text, ruler, part, limits, levels[1:]))
    return parts


def windows(text: str, ruler: Ruler, span: Span, size: int, overlap: int) -> Iterator[Span]:
    """Spans of whole words as large as fits, each beginning with the last words of the one before."""
    start, end = trim(text, *span)
    fresh = start
    while fresh < end:
        limit = min(end, ruler.reach(start, size))
        stop = end if limit >= end else last_cut(text, limit, fresh)
        yield trim(text, start, stop)
        earliest = start + 1
        start = fresh = skip_space(text, stop, end)
        if overlap and fresh < end:
            # What is repeated leaves room for at least one more word.
            room = ruler.back(word_end(text, fresh, end), size)
            start = next_word(text, min(fresh, max(earliest, room, ruler.back(fresh, overlap))), fresh)


def _indented(text: str, start: int, parts: Iterable[Span]) -> Iterator[Span]:
    for first, last in parts:
        line = text.rfind("\n", start, first) + 1
        yield max(line, start), last


def _parts(text: str, start: int, end: int, ends: Iterable[int]) -> Iterator[Span]:
    for stop in (*ends, end):
        first, last = trim(text, start, stop)
        if first < last:
            yield first, last
        start = stop
