"""Windows of a fixed size over the whole text."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.assembly import assemble
from ragstone.ingest.chunkers.cutting import windows
from ragstone.ingest.chunkers.limits import Limits


@dataclass(frozen=True, slots=True)
class SlidingWindowChunker:
    """Cuts between words wherever a window is full; structure plays no part."""

    limits: Limits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"sliding_window {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        whole = (0, len(document.text))
        spans = windows(document.text, ruler, whole, self.limits.size, self.limits.overlap)
        return assemble(document, ruler, spans, context=self.context)
