"""Which of the ranked passages are returned: none too weak, no copies, not all alike.

Copies are found by runs of three words that passages share, likeness by the vectors that the ledger keeps.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from ragstone.core.types import Vector
from ragstone.query.search import Found

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
