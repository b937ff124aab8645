"""The seam between a ledger and an index in the same database, and what all indexes share."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ragstone.core.types import Candidate
from ragstone.stores.sql.database import Connection


class TransactionalIndex(Protocol):
    """Kept in step by the ledger. All methods run on the writer's thread, inside a transaction."""

    def open(self, connection: Connection, kb_id: int) -> None:
        """Make what a new kb needs."""
        ...

    def add(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        """Index (chunk number, analysed text) pairs that go live."""
        ...

    def remove(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        """Take out (chunk number, analysed text) pairs that are live no more."""
        ...

    def drop(self, connection: Connection, kb_id: int) -> None:
        """Remove everything of a kb."""
        ...


# A tenth of the time that the class takes to make one; there are hundreds in each search.
_candidate = partial(tuple.__new__, Candidate)


def largest(scores: NDArray[np.float32], k: int, rounding: float = 0.0) -> NDArray[np.intp]:
    """Positions of the k largest scores and of all that, but for rounding, tie with the last, in no order."""
    if k >= len(scores):
        return np.arange(len(scores))
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= cut - np.float32(rounding))


def best_first(
    ids: Sequence[str], rows: NDArray[np.intp], scores: NDArray[np.floating[Any]], k: int
) -> list[Candidate]:
    """The k best of these rows as candidates; `ids[row]` names a row."""
    tied: list[str] = []
    cut = 0.0
    if len(rows) > 2 * k:
        # Many tie for the last places: sort what is surely in, and pick among the rest without sorting it.
        cut = float(np.partition(scores, len(scores) - k)[len(scores) - k])
        above = scores > cut
        tied = heapq.nsmallest(k - int(above.sum()), (ids[row] for row in rows[scores == cut].tolist()))
        rows, scores = rows[above], scores[above]
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order].tolist()
    best = list(map(_candidate, zip(map(ids.__getitem__, rows[order].tolist()), ordered, strict=True)))
    if len(set(ordered)) < len(ordered):
        best.sort(key=lambda candidate: (-candidate.score, candidate.chunk_id))
    del best[k:]
    best += [Candidate(chunk_id, cut) for chunk_id in tied]
    return best
