"""Where every part of a document stands: under which headings, on which page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from ragstone.core.types import Block, BlockKind, Parsed


@dataclass(frozen=True, slots=True)
class Unit:
    """A block together with the headings right before it, so that no chunk ends in a heading."""

    start: int
    end: int
    kind: BlockKind
    opens_section: bool


@dataclass(frozen=True, slots=True)
class Place:
    """What a chunk inherits from the blocks it covers."""

    section: tuple[str, ...]
    page: int | None
    kind: BlockKind


class Outline:
    """The headings of a document laid over its text."""

    def __init__(self, document: Parsed) -> None:
        self._blocks = document.blocks
        self._starts = [block.start for block in document.blocks]
        self._sections = list(_sections(document))
        self.has_headings = any(block.kind == "heading" for block in document.blocks)

    def place(self, start: int, end: int) -> Place:
        """The section and kind of the first block in the span that is no heading; the page it begins on."""
        first = max(0, bisect_right(self._starts, start) - 1)
        lead = first
        while (
            self._blocks[lead].kind == "heading"
            and lead + 1 < len(self._blocks)
            and self._starts[lead + 1] < end
        ):
            lead += 1
        return Place(self._sections[lead], self._blocks[first].page, self._blocks[lead].kind)


def units(document: Parsed) -> Iterator[Unit]:
    """The blocks in order, headings joined to what follows them."""
    headings: list[Block] = []
    for block in document.blocks:
        if block.kind == "heading":
            headings.append(block)
            continue
        start = headings[0].start if headings else block.start
        yield Unit(start, block.end, block.kind, bool(headings))
        headings.clear()
    if headings:
        yield Unit(headings[0].start, headings[-1].end, "heading", True)


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
