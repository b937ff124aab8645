"""Pack the blocks of a document into chunks with their section, page and context, and chunk by section."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from ragstone.core.documents import place_metadata
from ragstone.core.types import Block, BlockKind, Chunk, PageStart, Parsed, TableHead
from ragstone.ingest.chunkers.cutting import (
    ChunkLimits,
    Ruler,
    Span,
    cut,
    levels_of,
    next_word,
    skip_space,
    split_lines,
)
from ragstone.ingest.parsers.definitions import find_term
from ragstone.language.sentences import sentence_spans

_RULE = re.compile(r"[ \t|:+=-]*-[ \t|:+=-]*")
_CAPTION_AND_NAMES = 3
"""The most lines before the one that names the columns."""
_LONGEST_HEADER = 400
LONGEST_HEAD = 2000
"""Characters of a table's head that are kept with each of its later chunks."""
Steps = Callable[[str], Iterable[Span]]
"""Spans of a text that a chunk may begin with when it repeats some of it."""


def find_table_header(text: str, table: Block) -> tuple[int, str]:
    """Return the end and the words of a table's head: caption, names of the columns, the rule under them."""
    ends = list(islice(_line_ends(text, table), _CAPTION_AND_NAMES + 1))
    barred = (number for number, end in enumerate(ends) if "|" in text[table.start : end])
    names = next(barred, 0) % _CAPTION_AND_NAMES
    below = names + 1
    if below < len(ends) and _RULE.fullmatch(text[ends[names] + 1 : ends[below]][:_LONGEST_HEADER]):
        names = below
    return ends[names], text[table.start : ends[names]][:_LONGEST_HEADER]


def _line_ends(text: str, table: Block) -> Iterator[int]:
    end = table.start - 1
    while end < table.end:
        found = text.find("\n", end + 1, table.end)
        end = table.end if found < 0 else found
        yield end


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A block together with the headings right before it, so that no chunk ends in a heading."""

    start: int
    end: int
    kind: BlockKind
    headings_end: int = 0
    """The end of its headings; 0 when it has none."""
    defines: bool = False
    """True for a term with its description."""

    @property
    def opens_section(self) -> bool:
        return self.headings_end > 0


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """The section, page and table that a chunk inherits from the blocks it covers."""

    section: tuple[str, ...]
    page: int | None
    kind: BlockKind
    header: str = ""
    """The part of its context about the table that it begins in the middle of."""
    head: TableHead | None = None
    """All of that table's head."""
    page_starts: tuple[PageStart, ...] = ()
    """The pages that begin inside it."""


class Outline:
    """The headings of a document laid over its text."""

    def __init__(self, document: Parsed) -> None:
        self._text = document.text
        self._blocks = document.blocks
        self._starts = [block.start for block in document.blocks]
        self._sections = list(_sections(document))
        self.has_headings = any(block.kind == "heading" for block in document.blocks)

    def place(self, start: int, end: int) -> ChunkPlace:
        """Return section and kind of the first block in the span that is no heading, and the first page."""
        first = max(0, bisect_right(self._starts, start) - 1)
        lead = first
        while self._blocks[lead].kind == "heading" and lead + 1 < len(self._blocks) and self._starts[lead + 1] < end:
            lead += 1
        block, kind = self._blocks[first], self._blocks[lead].kind
        pages = tuple(self._page_starts(first, end))
        section = self._sections[lead]
        if end <= self._blocks[lead].end and (term := find_term(self._text, self._blocks[lead])):
            section = (*section, " ".join(term.split()))
        return ChunkPlace(section, block.page, kind, *self._header(block, start), pages)

    def _header(self, block: Block, start: int) -> tuple[str, TableHead | None]:
        if block.kind != "table" or not block.start < start < block.end:
            return "", None
        head_end, header = find_table_header(self._text, block)
        if start <= head_end:
            return "", None
        whole = TableHead(block.start, block.page, self._text[block.start : head_end])
        return header, whole if len(whole.text) <= LONGEST_HEAD else None

    def _page_starts(self, first: int, end: int) -> Iterator[PageStart]:
        for before, block in pairwise(self._blocks[first : bisect_left(self._starts, end)]):
            if block.page is not None and block.page != before.page:
                yield PageStart(block.start, block.page)


def iter_units(document: Parsed) -> Iterator[TextUnit]:
    """Yield the blocks in order, headings joined to the next block."""
    headings: list[Block] = []
    for block in document.blocks:
        if block.kind == "heading":
            headings.append(block)
            continue
        start = headings[0].start if headings else block.start
        defines = bool(find_term(document.text, block))
        yield TextUnit(start, block.end, block.kind, headings[-1].end if headings else 0, defines)
        headings.clear()
    if headings:
        yield TextUnit(headings[0].start, headings[-1].end, "heading", headings[-1].end)


def group_by_section(parts: Iterable[TextUnit]) -> list[list[TextUnit]]:
    """Return the units of each section together, in order."""
    sections: list[list[TextUnit]] = []
    for unit in parts:
        if sections and not unit.opens_section:
            sections[-1].append(unit)
        else:
            sections.append([unit])
    return sections


def _sections(document: Parsed) -> Iterator[tuple[str, ...]]:
    """Yield the path of headings over each block, without the title of the document."""
    open_headings: list[Block] = []
    path: tuple[str, ...] = ()
    for block in document.blocks:
        if block.kind == "heading":
            while open_headings and open_headings[-1].level >= block.level:
                open_headings.pop()
            open_headings.append(block)
            path = tuple(" ".join(heading.label.split()) for heading in open_headings)
            if path[0] == " ".join(document.title.split()):
                path = path[1:]
        yield path


def assemble(document: Parsed, ruler: Ruler, spans: Iterable[Span], *, context: bool) -> list[Chunk]:
    """Return one chunk per span, in order."""
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
    """Return title and section path as two headings and a blank line, without those that are missing."""
    lines = []
    if title.strip():
        lines.append(f"# {' '.join(title.split())}\n")
    if section:
        lines.append(f"## {' > '.join(section)}\n")
    return "".join(lines) + "\n" if lines else ""


def _context(document: Parsed, outline: Outline, place: ChunkPlace) -> str:
    headings = format_context(document.title, place.section) if outline.has_headings or place.section else ""
    return f"{headings}{place.header}\n" if place.header else headings


def line_spans(text: str) -> Iterable[Span]:
    """Return lines with their indentation: the places from which code and tables may be repeated."""
    return split_lines(text, 0, len(text))


def fill(text: str, ruler: Ruler, units: Iterable[TextUnit], limits: ChunkLimits, least: int = 0) -> list[Span]:
    """Return chunks over as many neighbouring units as fit.

    A table stays whole, or is cut into chunks of rows. A term stays with its description, or has chunks of its own.
    Where the last chunk would be smaller than `least`, the others leave more to it.
    """
    spans: list[Span] = []
    parts: list[Span] = []
    whole: list[Span] = []
    for unit in units:
        cut_parts = cut(text, ruler, (unit.start, unit.end), limits, levels_of(unit.kind))
        stays = unit.kind == "table" or unit.defines
        if stays and len(cut_parts) > 1:
            spans += pack_evenly(text, ruler, parts, limits, whole, least)
            spans += pack(text, ruler, cut_parts, limits, steps=sentence_spans if unit.defines else line_spans)
            parts, whole = [], []
            continue
        parts += cut_parts
        if stays:
            whole.append((unit.start, unit.end))
    return spans + pack_evenly(text, ruler, parts, limits, whole, least)


def pack(
    text: str,
    ruler: Ruler,
    parts: Sequence[Span],
    limits: ChunkLimits,
    whole: Sequence[Span] = (),
    steps: Steps = sentence_spans,
) -> list[Span]:
    """Return spans over as many parts as fit; every part must fit by itself. A `whole` span is not repeated in part."""
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
    text: str, ruler: Ruler, parts: Sequence[Span], limits: ChunkLimits, whole: Sequence[Span] = (), least: int = 0
) -> list[Span]:
    """Pack as `pack` does, but leave the last chunk at least `least` where the others can spare it."""
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
    """Return the start of a chunk that repeats the end of the one before: at a sentence, `most` of them at the most.

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
    """Return the place, or the end of the span that it lies inside of."""
    found = bisect_right(whole, place, key=lambda span: span[0]) - 1
    if found < 0 or place == whole[found][0]:
        return place
    return max(place, whole[found][1])


@dataclass(frozen=True, slots=True)
class MarkdownChunker:
    """Packs the blocks of one section up to the size and never mixes sections.

    Works on any document with headings. A heading stays with what follows it. Tables and code are kept
    whole where they fit and cut at lines where they do not. Neighbouring sections are joined only when
    one of them is smaller than `min_size` and both fit together.
    """

    limits: ChunkLimits
    min_size: int = 0
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"markdown {self.limits.fingerprint} min={self.min_size} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        sections = group_by_section(iter_units(document))
        spans: list[Span] = []
        for section in self._join_small(ruler, sections) if self.min_size else sections:
            spans += fill(document.text, ruler, section, self.limits)
        return assemble(document, ruler, spans, context=self.context)

    def _join_small(self, ruler: Ruler, sections: list[list[TextUnit]]) -> list[list[TextUnit]]:
        joined = sections[:1]
        for section in sections[1:]:
            before = ruler.size(joined[-1][0].start, joined[-1][-1].end)
            after = ruler.size(section[0].start, section[-1].end)
            together = ruler.size(joined[-1][0].start, section[-1].end)
            if min(before, after) < self.min_size and together <= self.limits.size:
                joined[-1].extend(section)
            else:
                joined.append(section)
        return joined
