"""Chunkers for plain text: by paragraph, sentence, sliding window, or recursively."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragstone.core.types import Block, BlockKind, Chunk, Parsed
from ragstone.ingest.chunkers.cutting import (
    ChunkLimits,
    Ruler,
    Span,
    cut,
    cut_windows,
    separator_levels,
    split_lines,
    split_sentences,
)
from ragstone.ingest.chunkers.packing import assemble, fill, iter_units, line_spans, pack


@dataclass(slots=True)
class BlockGroup:
    """Blocks that share a chunk, or the one block that is cut into several."""

    start: int
    end: int
    kind: BlockKind
    level: int
    parent: int | None
    """Number of the group with the heading it stands under."""
    section: int
    """Number of the block that is its heading; -1 above the first one."""
    only_headings: bool


def group_blocks(document: Parsed, ruler: Ruler, size: int, min_size: int) -> list[BlockGroup]:
    """Return one group per heading and per block; small neighbours of one section share one while they fit `size`."""
    groups: list[BlockGroup] = []
    open_headings: list[tuple[int, int]] = []  # Markdown level and group of each heading above
    section = -1
    for number, block in enumerate(document.blocks):
        heading = block.kind == "heading"
        if heading:
            while open_headings and open_headings[-1][0] >= block.level:
                open_headings.pop()
        parent = open_headings[-1][1] if open_headings else None
        if groups and _belongs(groups, block, parent, section) and _fits(groups[-1], block, ruler, size, min_size):
            groups[-1].end = block.end
            groups[-1].only_headings &= heading
        else:
            level = len(open_headings) + 1
            groups.append(BlockGroup(block.start, block.end, block.kind, level, parent, section, heading))
        if heading:
            section = number
            groups[-1].section = section
            open_headings.append((block.level, len(groups) - 1))
    return groups


def place_chunks(chunks: Sequence[Chunk], owners: Sequence[int], groups: Sequence[BlockGroup]) -> list[Chunk]:
    """Return the chunks with their level and parent; `owners` are the groups they were cut from."""
    first_chunks: dict[int, int] = {}
    for chunk, owner in zip(chunks, owners, strict=True):
        first_chunks.setdefault(owner, chunk.index)
    found = []
    for chunk, owner in zip(chunks, owners, strict=True):
        parent = groups[owner].parent
        above = None if parent is None else first_chunks[parent]
        found.append(replace(chunk, level=groups[owner].level, parent=above))
    return found


def _belongs(groups: Sequence[BlockGroup], block: Block, parent: int | None, section: int) -> bool:
    if block.kind == "heading":
        # A bare heading goes with the one below it, not with a sibling.
        return groups[-1].only_headings and parent == len(groups) - 1
    return groups[-1].section == section


def _fits(last: BlockGroup, block: Block, ruler: Ruler, size: int, min_size: int) -> bool:
    small = min(ruler.size(last.start, last.end), ruler.size(block.start, block.end)) < min_size
    return small and ruler.size(last.start, block.end) <= size


@dataclass(frozen=True, slots=True)
class ParagraphChunker:
    """Packs paragraphs, lists, tables and code up to the size; only one larger than that is cut."""

    limits: ChunkLimits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"paragraph {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        spans = fill(document.text, ruler, iter_units(document), self.limits)
        return assemble(document, ruler, spans, context=self.context)


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Packs sentences up to the size; only a sentence larger than that is cut."""

    limits: ChunkLimits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"sentence {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        text = document.text
        ruler = self.limits.ruler(text)
        parts: list[Span] = []
        for block in document.blocks:
            for sentence in split_sentences(text, block.start, block.end):
                parts.extend(cut(text, ruler, sentence, self.limits, ()))
        return assemble(document, ruler, pack(text, ruler, parts, self.limits), context=self.context)


@dataclass(frozen=True, slots=True)
class SlidingWindowChunker:
    """Cuts between words wherever a window is full; structure plays no part."""

    limits: ChunkLimits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"sliding_window {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        whole = (0, len(document.text))
        spans = cut_windows(document.text, ruler, whole, self.limits.size, self.limits.overlap)
        return assemble(document, ruler, spans, context=self.context)


@dataclass(frozen=True, slots=True)
class RecursiveChunker:
    """One chunk per heading and per block, each under its heading; larger ones are cut by `separators`.

    With a `min_size` a chunk that is smaller, or would be followed by a smaller one, is joined with the next
    block of the same section while both fit together; a heading is joined with its text in the same way.
    Without one every heading and block stays a chunk of its own. The level of a heading is its depth in the
    tree, that of a block one more; the parent is the chunk with the heading they stand under. A table is cut
    between rows only.
    """

    limits: ChunkLimits
    min_size: int = 0
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ")
    context: bool = True

    @property
    def fingerprint(self) -> str:
        options = f"min={self.min_size} separators={self.separators!r} context={self.context}"
        return f"recursive {self.limits.fingerprint} {options}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        text = document.text
        ruler = self.limits.ruler(text)
        levels = separator_levels(self.separators)
        groups = group_blocks(document, ruler, self.limits.size, self.min_size)
        spans: list[Span] = []
        owners: list[int] = []
        for number, group in enumerate(groups):
            whole = (group.start, group.end)
            if group.kind == "table":
                rows = cut(text, ruler, whole, self.limits, (split_lines,))
                packed = pack(text, ruler, rows, self.limits, steps=line_spans)
            else:
                packed = pack(text, ruler, cut(text, ruler, whole, self.limits, levels), self.limits)
            spans += packed
            owners += [number] * len(packed)
        return place_chunks(assemble(document, ruler, spans, context=self.context), owners, groups)
