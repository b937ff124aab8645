"""Packs neighbouring parts into chunks that fit, each beginning with the end of the one before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ragstone.core.sentences import sentence_spans
from ragstone.ingest.chunkers.boundaries import next_word, skip_space
from ragstone.ingest.chunkers.cutting import Span
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.ruler import Ruler


def pack(text: str, ruler: Ruler, parts: Sequence[Span], limits: Limits) -> list[Span]:
    """Spans over as many parts as fit; every part must fit by itself."""
    ends = [end for _, end in parts]
    packed: list[Span] = []
    first = 0
    while first < len(parts):
        start = parts[first][0]
        if packed and limits.overlap:
            start = _repeat_from(text, ruler, packed[-1][0], parts[first], limits)
        last = max(first, bisect_right(ends, ruler.reach(start, limits.size)) - 1)
        packed.append((start, ends[last]))
        first = last + 1
    return packed


def _repeat_from(text: str, ruler: Ruler, previous: int, part: Span, limits: Limits) -> int:
    """Where a chunk begins that repeats the end of the one before: at a sentence.

    Only a part that was itself cut out of a sentence may follow half of one: from a line or word on.
    """
    start, end = part
    earliest = max(ruler.back(start, limits.overlap), ruler.back(end, limits.size), previous + 1)
    if earliest >= start:
        return start
    inside = False
    for first, last in sentence_spans(text[previous:end]):
        if earliest <= previous + first < start:
            return previous + first
        inside = inside or previous + first < start < previous + last
    if not inside:
        return start
    line = text.find("\n", earliest - 1, start)
    return skip_space(text, line, start) if line >= 0 else next_word(text, earliest, start)
