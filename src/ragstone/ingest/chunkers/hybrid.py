"""Chunk by structure first, by meaning where a part is still too large, then add a little overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragstone.core.protocols import Chunker
from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.cutting import BY_LINE, ChunkLimits, Ruler, Span, cut, separator_levels, split_lines
from ragstone.ingest.chunkers.packing import TextUnit, assemble, pack_evenly, repeat_from
from ragstone.ingest.chunkers.plain import BlockGroup, group_blocks, place_chunks
from ragstone.ingest.chunkers.semantic import (
    Embed,
    Topic,
    add_shift,
    cut_by_meaning,
    cut_segments,
    find_topics,
    join_small,
)

REPEATED_SENTENCES = 2


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk before it repeats anything."""

    start: int
    end: int
    group: int
    similarity: float = math.nan


@dataclass(frozen=True, slots=True)
class HybridChunker:
    """Three stages: the tree of headings and blocks; topics inside a block that is too large; overlap.

    A topic that is still too large is cut by `separators`. The overlap is the last one or two sentences before
    the chunk, within one section, as far as the limits allow. Level and parent are those of the tree. When the
    model fails, the document is cut by `fallback`.
    """

    limits: ChunkLimits
    embed: Embed
    fallback: Chunker
    min_size: int = 0
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ")
    breakpoint: float = 0.5
    context: bool = True

    @property
    def fingerprint(self) -> str:
        options = f"min={self.min_size} separators={self.separators!r} breakpoint={self.breakpoint}"
        return f"hybrid {self.limits.fingerprint} {options} context={self.context} or {self.fallback.fingerprint}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        return cut_by_meaning(document, self._chunk, self.fallback)

    def _chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        groups = group_blocks(document, ruler, self.limits.size, self.limits.least(self.min_size))
        pieces = self._pieces(document.text, ruler, groups)
        spans = self._overlapping(document, ruler, pieces, groups)
        chunks = place_chunks(
            assemble(document, ruler, spans, context=self.context), [piece.group for piece in pieces], groups
        )
        return [add_shift(chunk, piece.similarity) for chunk, piece in zip(chunks, pieces, strict=True)]

    def _pieces(self, text: str, ruler: Ruler, groups: Sequence[BlockGroup]) -> list[_Piece]:
        large = [number for number, group in enumerate(groups) if self._is_large_prose(ruler, group)]
        prose = [cut_segments(text, [TextUnit(groups[at].start, groups[at].end, groups[at].kind)]) for at in large]
        topics = dict(zip(large, find_topics(text, prose, self.embed, self.breakpoint), strict=True))
        pieces: list[_Piece] = []
        for number, group in enumerate(groups):
            if number in topics:
                pieces += self._by_topic(text, ruler, number, topics[number])
                continue
            lines = cut(text, ruler, (group.start, group.end), replace(self.limits, overlap=0), (split_lines,))
            packed = pack_evenly(text, ruler, lines, replace(self.limits, overlap=0))
            pieces += [_Piece(start, end, number) for start, end in packed]
        return pieces

    def _is_large_prose(self, ruler: Ruler, group: BlockGroup) -> bool:
        return group.kind not in BY_LINE and ruler.size(group.start, group.end) > self.limits.size

    def _by_topic(self, text: str, ruler: Ruler, number: int, topics: Sequence[Topic]) -> list[_Piece]:
        # What will repeat something must leave room for it.
        room = min(self.limits.overlap, self.limits.size // 2)
        limits = replace(self.limits, size=self.limits.size - room, overlap=0)
        least = self.limits.least(self.min_size)
        levels = separator_levels(self.separators)
        pieces: list[_Piece] = []
        for topic in join_small(topics, ruler, least, limits.size):
            parts = cut(text, ruler, (topic.start, topic.end), limits, levels)
            spans = pack_evenly(text, ruler, parts, limits, least=least)
            similarities = [topic.similarity, *[math.nan] * (len(spans) - 1)]
            pieces += [
                _Piece(start, end, number, similarity)
                for (start, end), similarity in zip(spans, similarities, strict=True)
            ]
        return pieces

    def _overlapping(
        self, document: Parsed, ruler: Ruler, pieces: Sequence[_Piece], groups: Sequence[BlockGroup]
    ) -> list[Span]:
        tables = [(block.start, block.end) for block in document.blocks if block.kind == "table"]
        spans = [(piece.start, piece.end) for piece in pieces]
        for number in range(1, len(pieces)):
            before, after = groups[pieces[number - 1].group], groups[pieces[number].group]
            if self.limits.overlap and _go_on(before, after):
                start = repeat_from(
                    document.text,
                    ruler,
                    spans[number - 1][0],
                    (pieces[number].start, pieces[number].end),
                    self.limits,
                    whole=tables,
                    most=REPEATED_SENTENCES,
                )
                spans[number] = (start, pieces[number].end)
        return spans


def _go_on(before: BlockGroup, after: BlockGroup) -> bool:
    """Return whether the second group continues the prose of the first one's section."""
    prose = before.kind not in BY_LINE and after.kind not in BY_LINE
    return prose and not before.only_headings and before.section == after.section
