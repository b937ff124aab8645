"""Turns spans into chunks: text, tokens, page, section and the context put before them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragstone.core.documents import place_metadata
from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.cutting import Span
from ragstone.ingest.chunkers.outline import Outline, Place
from ragstone.ingest.chunkers.ruler import Ruler


def assemble(document: Parsed, ruler: Ruler, spans: Iterable[Span], *, context: bool) -> list[Chunk]:
    """One chunk per span, in order."""
    outline = Outline(document)
    chunks = []
    for index, (start, end) in enumerate(spans):
        place = outline.place(start, end)
        chunks.append(
            Chunk(
                index=index,
                text=document.text[start:end],
                start=start,
                end=end,
                context=_context(document, outline, place) if context else "",
                page=place.page,
                section=place.section,
                kind=place.kind,
                tokens=ruler.tokens(start, end),
                metadata=place_metadata(place.page_starts, place.head),
            )
        )
    return chunks


def context_of(title: str, section: Sequence[str]) -> str:
    """Title and section path as two headings and a blank line; what is missing is left out."""
    lines = []
    if title.strip():
        lines.append(f"# {' '.join(title.split())}\n")
    if section:
        lines.append(f"## {' > '.join(section)}\n")
    return "".join(lines) + "\n" if lines else ""


def _context(document: Parsed, outline: Outline, place: Place) -> str:
    headings = context_of(document.title, place.section) if outline.has_headings else ""
    return f"{headings}{place.header}\n" if place.header else headings
