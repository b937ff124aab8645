"""As many whole sentences as fit."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.assembly import assemble
from ragstone.ingest.chunkers.cutting import Span, by_sentence, cut
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.packing import pack


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Packs sentences up to the size; only a sentence larger than that is cut."""

    limits: Limits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"sentence {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        text = document.text
        ruler = self.limits.ruler(text)
        parts: list[Span] = []
        for block in document.blocks:
            for sentence in by_sentence(text, block.start, block.end):
                parts.extend(cut(text, ruler, sentence, self.limits, ()))
        return assemble(document, ruler, pack(text, ruler, parts, self.limits), context=self.context)
