"""The passages that were chosen, as hits."""

from __future__ import annotations

from ragstone.core.documents import page_starts, placement, table_head, without_places
from ragstone.core.types import Hit
from ragstone.query.search import Found


def packed(item: Found, context: str = "") -> Hit:
    """A hit: the passage, where it stands, and how each stage scored it."""
    live = item.chunk
    return Hit(
        chunk_id=live.id,
        document_id=live.document_id,
        title=live.title,
        uri=live.uri,
        section=" > ".join(live.chunk.section),
        page=live.chunk.page,
        text=live.chunk.text,
        score=round(item.score, 6),
        scores={name: round(value, 6) for name, value in item.fused.scores.items()},
        metadata={
            **live.metadata,
            **without_places(live.chunk.metadata),
            "source": live.source,
            "chunk_index": live.chunk.index,
        },
        start=live.chunk.start,
        end=live.chunk.end,
        context=context,
        placement=tuple(placement(live).items()),
        page_starts=page_starts(live.chunk.metadata),
        table_head=table_head(live.chunk.metadata),
    )
