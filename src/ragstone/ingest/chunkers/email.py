"""Chunk mail conversations: each chunk belongs to one message and has its subject as context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ragstone.core.types import Block, Chunk, Parsed
from ragstone.ingest.chunkers.cutting import ChunkLimits, Span
from ragstone.ingest.chunkers.packing import TextUnit, assemble, fill, iter_units
from ragstone.ingest.parsers.mail.marks import begins_message

_SUBJECT = "Subject: "
_LONGEST_GREETING = 60
_GREETING_END = ",!:，：！"


@dataclass(frozen=True, slots=True)
class EmailChunker:
    """Packs the paragraphs of one message up to the size and never mixes two messages.

    A greeting or a quote stays with what follows it. Every chunk but the one that begins with it gets the
    line with the subject as context, those of a forwarded message also that message's own.
    """

    limits: ChunkLimits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"email {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        spans: list[Span] = []
        for message in _messages(document):
            spans += fill(document.text, ruler, _with_leads(document.text, iter_units(message)), self.limits)
        chunks = assemble(document, ruler, spans, context=False)
        if not self.context:
            return chunks
        return [replace(chunk, context=_context(document.title, chunk)) for chunk in chunks]


def _messages(document: Parsed) -> Iterator[Parsed]:
    """Yield the document's messages; each begins at its mark or its copied headers."""
    message: list[Block] = []
    for block in document.blocks:
        if message and begins_message(document.text[block.start : block.end]):
            yield replace(document, blocks=tuple(message))
            message = []
        message.append(block)
    yield replace(document, blocks=tuple(message))


def _with_leads(text: str, message: Iterable[TextUnit]) -> Iterator[TextUnit]:
    """Yield the units with greetings and quotes joined to the next one, as headings are already."""
    lead: TextUnit | None = None
    for unit in message:
        joined = replace(unit, start=lead.start) if lead else unit
        lead = joined if _leads(text, unit) else None
        if lead is None:
            yield joined
    if lead is not None:
        yield lead


def _leads(text: str, unit: TextUnit) -> bool:
    is_short = unit.kind == "paragraph" and unit.end - unit.start <= _LONGEST_GREETING
    return unit.kind == "quote" or (is_short and text[unit.end - 1] in _GREETING_END)


def _context(title: str, chunk: Chunk) -> str:
    subject = f"{_SUBJECT}{' '.join(title.split())}"
    if not title.strip() or chunk.text.startswith(subject):
        return ""
    place = f"{' > '.join(chunk.section)}\n" if chunk.section else ""
    return f"{subject}\n{place}\n"
