"""As many whole paragraphs as fit."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.assembly import assemble
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.outline import units
from ragstone.ingest.chunkers.packing import fill


@dataclass(frozen=True, slots=True)
class ParagraphChunker:
    """Packs paragraphs, lists, tables and code up to the size; only one larger than that is cut."""

    limits: Limits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"paragraph {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        spans = fill(document.text, ruler, units(document), self.limits)
        return assemble(document, ruler, spans, context=self.context)
