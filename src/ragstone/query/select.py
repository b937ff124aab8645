"""Select the final hits: cut-off, diversity, neighbours, and what a hit carries."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from ragstone.core.documents import page_starts, placement, table_head, without_places
from ragstone.core.ledger import Ledger
from ragstone.core.types import Chunk, Hit, Vector
from ragstone.query.context import Found, Search

RUN = 3
_WORD = re.compile(r"\w+")


def without_copies(ranked: Sequence[Found], share: float) -> list[Found]:
    """Leave out a passage when this share of its runs of words, or of those of a better one, is common to both."""
    kept: list[Found] = []
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


def diversified(
    ranked: Sequence[Found], k: int, diversity: float, vectors: Mapping[str, Vector]
) -> list[Found]:
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
    """Each run of three words once; all words together when there are fewer."""
    words = _WORD.findall(text.casefold())
    size = min(RUN, len(words))
    return {tuple(words[n : n + size]) for n in range(len(words) - size + 1)} if words else set()


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
