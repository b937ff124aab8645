"""Chunk by section: the blocks under one heading, with the path to it."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.cutting import ChunkLimits, Ruler, Span
from ragstone.ingest.chunkers.packing import TextUnit, assemble, fill, group_by_section, iter_units


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
