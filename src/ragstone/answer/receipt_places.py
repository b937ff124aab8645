"""Where the quotes of a receipt stand now: the passages they are part of, and what is called otherwise since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.core.answers import Citation, QuoteState
from ragstone.core.documents import page_at, page_starts, table_head
from ragstone.core.types import Hit, LiveChunk

_MOST_SHOWN = 80
"""Characters of a title or heading in a message."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A document as it is kept now."""

    text: str
    chunks: Sequence[LiveChunk]


@dataclass(frozen=True, slots=True)
class Placed:
    """A quote where it stands now, or where it stood when it is no longer there."""

    citation: Citation
    state: QuoteState
    start: int
    passage: Hit | None = None
    """What an answer would be given today to say something from this quote; None when the quote is not there."""
    differences: tuple[str, ...] = ()
    """What the receipt calls otherwise than the document does."""

    @property
    def end(self) -> int:
        return self.start + len(self.citation.quote) if self.passage else self.citation.end

    @property
    def place(self) -> tuple[str, int, int]:
        return (self.citation.document_id, self.start, self.end)


def placed(citation: Citation, stored: Stored | None) -> Placed:
    """A quote of a receipt, looked for in its document."""
    state, start = _looked_for(citation, stored)
    if stored is None or state not in ("stands", "moved"):
        return Placed(citation, state, citation.start)
    end = start + len(citation.quote)
    holding = [one for one in stored.chunks if one.chunk.start <= start and end <= one.chunk.end]
    touching = holding or [one for one in stored.chunks if one.chunk.start < end and start < one.chunk.end]
    if not touching:
        return Placed(citation, "changed", citation.start)  # a part that nobody can find is not given
    best = max(
        touching, key=lambda one: (one.id == citation.chunk_id, -len(_differences(citation, one, start)))
    )
    parts = [best] if holding else touching
    first = min(parts, key=lambda one: one.chunk.start)
    passage = _passage(best, first, stored.text, max(one.chunk.end for one in parts))
    return Placed(citation, state, start, passage, _differences(citation, best, start))


def _looked_for(citation: Citation, stored: Stored | None) -> tuple[QuoteState, int]:
    if citation.site:
        return "elsewhere", citation.start
    if stored is None:
        return "gone", citation.start
    text, quote = stored.text, citation.quote
    if text[citation.start : citation.end] == quote:
        return "stands", citation.start
    found = [
        place for place in (_last_before(text, citation), text.find(quote, citation.start)) if place >= 0
    ]
    if not found:
        return "changed", citation.start
    return "moved", min(found, key=lambda place: abs(place - citation.start))


def _last_before(text: str, citation: Citation) -> int:
    """Where the quote stands last that begins no later than it did; `rfind` may take quadratic time, `find` not."""
    before = text[: citation.start + len(citation.quote)]
    place = before[::-1].find(citation.quote[::-1])
    return -1 if place < 0 else len(before) - place - len(citation.quote)


def _passage(chunk: LiveChunk, first: LiveChunk, text: str, end: int) -> Hit:
    start = first.chunk.start
    return Hit(
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        uri=chunk.uri,
        section=_section(chunk),
        page=chunk.chunk.page,
        text=text[start:end],
        score=1.0,
        scores={},
        metadata={},
        start=start,
        end=end,
        page_starts=page_starts(chunk.chunk.metadata),
        table_head=table_head(first.chunk.metadata),
    )


def _differences(citation: Citation, chunk: LiveChunk, start: int) -> tuple[str, ...]:
    page = page_at(start, chunk.chunk.page, page_starts(chunk.chunk.metadata))
    pairs = (
        ("title", chunk.title, citation.title),
        ("address", chunk.uri, citation.uri),
        ("section", _section(chunk), citation.section),
        ("page", _page(page), _page(citation.page)),
    )
    return tuple(
        f"quote {citation.n}: its {name} is “{_short(now)}”, the receipt says “{_short(then)}”"
        for name, now, then in pairs
        if now != then
    )


def _section(chunk: LiveChunk) -> str:
    return " > ".join(chunk.chunk.section)


def _page(page: int | None) -> str:
    return "" if page is None else str(page)


def _short(words: str) -> str:
    return words if len(words) <= _MOST_SHOWN else words[: _MOST_SHOWN - 1] + "…"
