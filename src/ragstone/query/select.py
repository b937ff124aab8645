"""Select the final hits: cut-off, diversity, neighbours, and what a hit carries."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from ragstone.core.documents import page_starts, placement, table_head, without_places
from ragstone.core.ledger import Ledger
from ragstone.core.types import Chunk, Hit, Vector
from ragstone.query.context import RankedChunk, SearchContext

RUN = 3
_WORD = re.compile(r"\w+")


def drop_copies(ranked: Sequence[RankedChunk], share: float) -> list[RankedChunk]:
    """Leave out a passage when this share of its runs of words, or of those of a better one, is common to both."""
    kept: list[RankedChunk] = []
    sizes: list[int] = []
    holders: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for item in ranked:
        runs = _runs(item.chunk.chunk.text)
        common = Counter(holder for run in runs for holder in holders.get(run, ()))
        if any(count >= share * min(len(runs), sizes[holder]) for holder, count in common.items()):
            continue
        for run in runs:
            holders[run].append(len(kept))
        sizes.append(len(runs))
        kept.append(item)
    return kept


def diversify(
    ranked: Sequence[RankedChunk], k: int, diversity: float, vectors: Mapping[str, Vector]
) -> list[RankedChunk]:
    """Pick k by maximal marginal relevance; a passage without a vector counts as unlike all others.

    A passage keeps its own score, so that scores need not fall from one to the next.
    """
    import numpy as np

    if not ranked:
        return []
    length = max((len(vector) for vector in vectors.values()), default=1)
    rows = [vectors.get(item.chunk.chunk.contextual, np.zeros(length)) for item in ranked]
    matrix = np.asarray(rows, np.float32)
    relevance = (1 - diversity) * np.array([item.score for item in ranked])
    likeness = np.zeros(len(ranked))
    chosen: list[int] = []
    for _ in range(min(k, len(ranked))):
        worth = relevance - diversity * likeness
        worth[chosen] = -np.inf
        best = int(worth.argmax())
        chosen.append(best)
        likeness = np.maximum(likeness, matrix @ matrix[best])
    return [ranked[n] for n in chosen]


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return each run of three words once; all words together if there are fewer."""
    words = _WORD.findall(text.casefold())
    size = min(RUN, len(words))
    return {tuple(words[n : n + size]) for n in range(len(words) - size + 1)} if words else set()


LONGEST = 20_000
"""Characters of context: more than that is a document, not a surrounding."""


async def load_contexts(
    ledger: Ledger, search: SearchContext, found: Sequence[RankedChunk], *, neighbours: int, parents: bool
) -> Mapping[str, str]:
    """Return the text around each passage, itself included, by chunk id."""
    around: dict[str, str] = {}
    chunks: dict[str, Sequence[Chunk]] = {}
    for item in found:
        live = item.chunk
        if live.document_id not in chunks:
            read = await ledger.document_chunks(search.tenant, live.document_id)
            # Of another version the offsets would not fit.
            chunks[live.document_id] = [other.chunk for other in read if other.version == live.version]
        own = chunks[live.document_id]
        wanted = _section(own, live.chunk) if parents else set()
        wanted.update(range(live.chunk.index - neighbours, live.chunk.index + neighbours + 1))
        around[live.id] = join_chunks([chunk for chunk in own if chunk.index in wanted], live.chunk)
    return around


def join_chunks(chunks: Sequence[Chunk], hit: Chunk) -> str:
    """Return the text that the chunks cover, each part once; cut to the part around the hit if it is long."""
    text, end, hit_at = "", -1, 0
    for chunk in sorted(chunks, key=lambda chunk: (chunk.start, chunk.end)):
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
    """Return the indexes of the chunks under the hit's heading, and of the chunk that holds the heading."""
    same = {chunk.index for chunk in chunks if chunk.section == hit.section and chunk.parent == hit.parent}
    return same | ({hit.parent} if hit.parent is not None else set())


def pack_hit(item: RankedChunk, context: str = "") -> Hit:
    """Return a passage as a hit, with its place and its score of each stage."""
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
