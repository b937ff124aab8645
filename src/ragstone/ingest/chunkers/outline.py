"""Tables: the row that names the columns goes with every part of one that had to be cut."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from ragstone.core.types import Block, BlockKind, PageStart, Parsed, TableHead

_RULE = re.compile(r"[ \t|:+=-]*-[ \t|:+=-]*")
_CAPTION_AND_NAMES = 3
"""How many lines may go by until the one that names the columns."""
_LONGEST_HEADER = 400


def find_table_header(text: str, table: Block) -> tuple[int, str]:
    """Where a table's head ends, and its words: caption, names of the columns, the rule under them."""
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


LONGEST_HEAD = 2000
"""Characters of a table's head that are kept with each of its later chunks."""


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A block together with the headings right before it, so that no chunk ends in a heading."""

    start: int
    end: int
    kind: BlockKind
    headings_end: int = 0
    """Where its headings end; 0 when it has none."""

    @property
    def opens_section(self) -> bool:
        return self.headings_end > 0


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """What a chunk inherits from the blocks it covers."""

    section: tuple[str, ...]
    page: int | None
    kind: BlockKind
    header: str = ""
    """What the chunk's context says of the table that it begins in the middle of."""
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
        """The section and kind of the first block in the span that is no heading; the page it begins on."""
        first = max(0, bisect_right(self._starts, start) - 1)
        lead = first
        while (
            self._blocks[lead].kind == "heading"
            and lead + 1 < len(self._blocks)
            and self._starts[lead + 1] < end
        ):
            lead += 1
        block, kind = self._blocks[first], self._blocks[lead].kind
        pages = tuple(self._page_starts(first, end))
        return ChunkPlace(self._sections[lead], block.page, kind, *self._header(block, start), pages)

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
    """The blocks in order, headings joined to what follows them."""
    headings: list[Block] = []
    for block in document.blocks:
        if block.kind == "heading":
            headings.append(block)
            continue
        start = headings[0].start if headings else block.start
        yield TextUnit(start, block.end, block.kind, headings[-1].end if headings else 0)
        headings.clear()
    if headings:
        yield TextUnit(headings[0].start, headings[-1].end, "heading", headings[-1].end)


def group_by_section(parts: Iterable[TextUnit]) -> list[list[TextUnit]]:
    """The units of each section together, in order."""
    sections: list[list[TextUnit]] = []
    for unit in parts:
        if sections and not unit.opens_section:
            sections[-1].append(unit)
        else:
            sections.append([unit])
    return sections


def _sections(document: Parsed) -> Iterator[tuple[str, ...]]:
    """The path of headings over each block, without the title of the document."""
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
