"""Where the parts of a chunk stand, beyond the page it begins on: kept in its metadata, and shown by its hits."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.types import Json, Metadata, PageStart, TableHead

PAGE_STARTS = "page_starts"
TABLE_HEAD = "table_head"


def place_metadata(pages: Sequence[PageStart], head: TableHead | None) -> dict[str, Json]:
    """What is kept of both; nothing for most chunks."""
    found: dict[str, Json] = {}
    if pages:
        found[PAGE_STARTS] = [list(one) for one in pages]
    if head:
        found[TABLE_HEAD] = [head.start, head.page, head.text]
    return found


def page_starts(metadata: Metadata) -> tuple[PageStart, ...]:
    """Where pages begin inside a chunk; none where it was stored before that was kept."""
    return tuple(PageStart(start, page) for start, page in metadata.get(PAGE_STARTS, ()))


def table_head(metadata: Metadata) -> TableHead | None:
    """The head of the table that a chunk begins in the middle of."""
    kept = metadata.get(TABLE_HEAD)
    return TableHead(*kept) if kept else None


def without_places(metadata: Metadata) -> dict[str, Json]:
    """The metadata that is about what a chunk says."""
    return {name: value for name, value in metadata.items() if name not in (PAGE_STARTS, TABLE_HEAD)}


def page_at(place: int, first: int | None, starts: Sequence[PageStart]) -> int | None:
    """The page of a place in the document, in a chunk that begins on page `first`."""
    return next((one.page for one in reversed(starts) if one.start <= place), first)
