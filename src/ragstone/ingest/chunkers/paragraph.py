"""As many whole paragraphs as fit."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.assembly import assemble
from ragstone.ingest.chunkers.cutting import Span, cut, levels_of
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.outline import units
from ragstone.ingest.chunkers.packing import pack


@dataclass(frozen=True, slots=True)
class ParagraphChunker:
    """Packs paragraphs, lists, tables and code up to the size; only one larger than that is cut."""

    limits: Limits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"paragraph {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        text = document.text
        ruler = self.limits.ruler(text)
        parts: list[Span] = []
        for unit in units(document):
            parts.extend(cut(text, ruler, (unit.start, unit.end), self.limits, levels_of(unit.kind)))
        return assemble(document, ruler, pack(text, ruler, parts, self.limits), context=self.context)
