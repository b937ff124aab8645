"""Cuts where the topic changes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragstone.core.protocols import Chunker
from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.cutting import Span
from ragstone.ingest.chunkers.measure import ChunkLimits
from ragstone.ingest.chunkers.outline import group_by_section, iter_units
from ragstone.ingest.chunkers.packing import assemble, fill
from ragstone.ingest.chunkers.topics import (
    Embed,
    add_shift,
    cut_by_meaning,
    cut_segments,
    find_topics,
    join_small,
)


@dataclass(frozen=True, slots=True)
class SemanticChunker:
    """Joins neighbouring segments of a section that are alike and cuts where they are not.

    A topic smaller than `min_size` goes with a neighbour of its section. One larger than the size is cut at
    sentences, and only there does a chunk repeat the end of the one before. When the model fails, the document
    is cut by `fallback`.
    """

    limits: ChunkLimits
    embed: Embed
    fallback: Chunker
    min_size: int = 0
    breakpoint: float = 0.5
    context: bool = True

    @property
    def fingerprint(self) -> str:
        options = f"min={self.min_size} breakpoint={self.breakpoint} context={self.context}"
        return f"semantic {self.limits.fingerprint} {options} or {self.fallback.fingerprint}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        return cut_by_meaning(document, self._chunk, self.fallback)

    def _chunk(self, document: Parsed) -> list[Chunk]:
        text = document.text
        ruler = self.limits.ruler(text)
        least = self.limits.least(self.min_size)
        sections = [cut_segments(text, section) for section in group_by_section(iter_units(document))]
        spans: list[Span] = []
        shifts: list[float] = []
        for topics in find_topics(text, sections, self.embed, self.breakpoint):
            for topic in join_small(topics, ruler, least, self.limits.size):
                filled = fill(text, ruler, topic.units, self.limits, least)
                spans += filled
                shifts += [topic.similarity, *[math.nan] * (len(filled) - 1)]
        chunks = assemble(document, ruler, spans, context=self.context)
        return [add_shift(chunk, shift) for chunk, shift in zip(chunks, shifts, strict=True)]
