"""Turns spans into chunks: text, tokens, page, section and the context put before them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ragstone.core.documents import place_metadata
from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.cutting import Span, cut, levels_of, next_word, skip_space, split_lines
from ragstone.ingest.chunkers.measure import ChunkLimits, Ruler
from ragstone.ingest.chunkers.outline import ChunkPlace, Outline, TextUnit
from ragstone.language.sentences import sentence_spans


def assemble(document: Parsed, ruler: Ruler, spans: Iterable[Span], *, context: bool) -> list[Chunk]:
    """One chunk per span, in order."""
    outline = Outline(document)
    chunks = []
    for index, (start, end) in enumerate(spans):
        place = outline.place(start, end)
        chunks.append(
            Chunk(
                index=index,
                text=document.text[start:end],
                start=start,
                end=end,
                context=_context(document, outline, place) if context else "",
                page=place.page,
                section=place.section,
                kind=place.kind,
                tokens=ruler.tokens(start, end),
                metadata=place_metadata(place.page_starts, place.head),
            )
        )
    return chunks


def format_context(title: str, section: Sequence[str]) -> str:
    """Title and section path as two headings and a blank line; what is missing is left out."""
    lines = []
    if title.strip():
        lines.append(f"# {' '.join(title.split())}\n")
    if section:
        lines.append(f"## {' > '.join(section)}\n")
    return "".join(lines) + "\n" if lines else ""


def _context(document: Parsed, outline: Outline, place: ChunkPlace) -> str:
    headings = format_context(document.title, place.section) if outline.has_headings else ""
    return f"{headings}{place.header}\n" if place.header else headings


Steps = Callable[[str], Iterable[Span]]
"""Spans of a text that a chunk may begin with when it repeats some of it."""


def line_spans(text: str) -> Iterable[Span]:
    """Lines with their indentation: where code and tables may be repeated from."""
    return split_lines(text, 0, len(text))


def fill(
    text: str, ruler: Ruler, units: Iterable[TextUnit], limits: ChunkLimits, least: int = 0
) -> list[Span]:
    """Chunks over neighbouring units, as many as fit. A table is whole, or in rows of its own.

    Where the last chunk would be smaller than `least`, the others leave more to it.
    """
    spans: list[Span] = []
    parts: list[Span] = []
    tables: list[Span] = []
    for unit in units:
        cut_parts = cut(text, ruler, (unit.start, unit.end), limits, levels_of(unit.kind))
        if unit.kind == "table" and len(cut_parts) > 1:
            spans += pack_evenly(text, ruler, parts, limits, tables, least)
            spans += pack(text, ruler, cut_parts, limits, steps=line_spans)
            parts, tables = [], []
            continue
        parts += cut_parts
        if unit.kind == "table":
            tables.append((unit.start, unit.end))
    return spans + pack_evenly(text, ruler, parts, limits, tables, least)


def pack(
    text: str,
    ruler: Ruler,
    parts: Sequence[Span],
    limits: ChunkLimits,
    whole: Sequence[Span] = (),
    steps: Steps = sentence_spans,
) -> list[Span]:
    """Spans over as many parts as fit; every part must fit by itself. What is `whole` is not repeated in half."""
    ends = [end for _, end in parts]
    packed: list[Span] = []
    first = 0
    while first < len(parts):
        start = parts[first][0]
        if packed and limits.overlap:
            start = repeat_from(text, ruler, packed[-1][0], parts[first], limits, whole=whole, steps=steps)
        last = max(first, bisect_right(ends, ruler.reach(start, limits.size)) - 1)
        packed.append((start, ends[last]))
        first = last + 1
    return packed


def pack_evenly(
    text: str,
    ruler: Ruler,
    parts: Sequence[Span],
    limits: ChunkLimits,
    whole: Sequence[Span] = (),
    least: int = 0,
) -> list[Span]:
    """As `pack` does, but the last chunk is not left with less than `least` where the others can spare it."""
    packed = pack(text, ruler, parts, limits, whole)
    if len(packed) < 2 or ruler.size(*packed[-1]) >= least:
        return packed
    total = ruler.size(parts[0][0], parts[-1][1])
    size = total // len(packed) + limits.overlap + max(ruler.size(*part) for part in parts)
    if size >= limits.size:
        return packed
    evenly = pack(text, ruler, parts, replace(limits, size=size), whole)
    return evenly if ruler.size(*evenly[-1]) > ruler.size(*packed[-1]) else packed


def repeat_from(
    text: str,
    ruler: Ruler,
    previous: int,
    part: Span,
    limits: ChunkLimits,
    *,
    whole: Sequence[Span] = (),
    steps: Steps = sentence_spans,
    most: int | None = None,
) -> int:
    """Where a chunk begins that repeats the end of the one before: at a sentence, `most` of them at the most.

    Only a part that was itself cut out of a sentence may follow half of one: from a line or word on.
    """
    start, end = part
    earliest = max(ruler.back(start, limits.overlap), ruler.back(end, limits.size), previous + 1)
    earliest = _behind(whole, earliest)
    if earliest >= start:
        return start
    inside = False
    begins = []
    for first, last in steps(text[previous:end]):
        place = previous + first
        if earliest <= place < start and _behind(whole, place) == place:
            begins.append(place)
        inside = inside or place < start < previous + last
    if begins:
        return begins[-most if most else 0 :][0]
    if not inside:
        return start
    line = text.find("\n", earliest - 1, start)
    return skip_space(text, line, start) if line >= 0 else next_word(text, earliest, start)


def _behind(whole: Sequence[Span], place: int) -> int:
    """The place, or the end of the span it lies inside of."""
    found = bisect_right(whole, place, key=lambda span: span[0]) - 1
    if found < 0 or place == whole[found][0]:
        return place
    return max(place, whole[found][1])
