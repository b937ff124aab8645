"""What stands around a hit: its neighbours, or its whole section, joined without repeating what chunks share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragstone.core.ledger import Ledger
from ragstone.core.types import Chunk
from ragstone.query.search import Found, Search

LONGEST = 20_000
"""Characters of context: more than that is a document, not a surrounding."""


async def contexts(
    ledger: Ledger, search: Search, found: Sequence[Found], *, neighbours: int, parents: bool
) -> Mapping[str, str]:
    """By chunk id, the text around each passage, the passage itself included."""
    around: dict[str, str] = {}
    chunks: dict[str, Sequence[Chunk]] = {}
    for item in found:
        live = item.chunk
        if live.document_id not in chunks:
            read = await ledger.document_chunks(search.tenant, live.document_id)
            # Of another version the offsets would not fit.
            chunks[live.document_id] = [one.chunk for one in read if one.version == live.version]
        own = chunks[live.document_id]
        wanted = _section(own, live.chunk) if parents else set()
        wanted.update(range(live.chunk.index - neighbours, live.chunk.index + neighbours + 1))
        around[live.id] = joined([one for one in own if one.index in wanted], live.chunk)
    return around


def joined(chunks: Sequence[Chunk], hit: Chunk) -> str:
    """The text that the chunks cover, in order, each part once; cut to the part around the hit when it is long."""
    text, end, hit_at = "", -1, 0
    for chunk in sorted(chunks, key=lambda one: (one.start, one.end)):
        if chunk.end <= end:
            continue
        if text and chunk.start > end:
            text += "\n\n"
        if chunk.index == hit.index:
            hit_at = len(text)
        text += chunk.text[max(end - chunk.start, 0) :] if end >= 0 else chunk.text
        end = chunk.end
    if len(text) <= LONGEST:
        return text or hit.text
    start = max(0, min(hit_at - LONGEST // 4, len(text) - LONGEST))
    return text[start : start + LONGEST]


def _section(chunks: Sequence[Chunk], hit: Chunk) -> set[int]:
    """The chunks under the hit's own heading, and the chunk that holds that heading."""
    same = {chunk.index for chunk in chunks if chunk.section == hit.section and chunk.parent == hit.parent}
    return same | ({hit.parent} if hit.parent is not None else set())
