"""The seam between a ledger and an index in its database, and what indexes share: a cache in memory and ranking."""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import ModelMismatch
from ragstone.core.filters import Filter
from ragstone.core.model_types import model_name
from ragstone.core.types import Candidate, KnowledgeBase, Space, Vector
from ragstone.stores.ledger.documents import read_sequence
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
    """Return positions of the k largest scores and of all that, but for rounding, tie with the last, in no order."""
    if k >= len(scores):
        return np.arange(len(scores))
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= cut - np.float32(rounding))


def best_first(
    ids: Sequence[str], rows: NDArray[np.intp], scores: NDArray[np.floating[Any]], k: int
) -> list[Candidate]:
    """Return the k best of these rows as candidates; `ids[row]` names a row."""
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


Key = tuple[str, str, int]


class CachedPart(Protocol):
    """A part of an index that knows how much memory it takes."""

    @property
    def bytes(self) -> int: ...


R = TypeVar("R", bound=CachedPart)


class Following(Generic[R]):
    """A part of an index, and the place in the change feed up to which it is current."""

    def __init__(self, resident: R) -> None:
        self.resident = resident
        self.sequence = 0
        self.version = -1
        """The file's version when it was last true; equal versions mean that nothing was committed since."""
        self.lock = threading.Lock()


class IndexCache:
    """All that is kept in memory, by (kind, tenant, number)."""

    def __init__(self, memory_mb: int) -> None:
        self._budget = memory_mb * 1024 * 1024
        self._kept: OrderedDict[Key, Following[Any]] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: Key, make: Callable[[], R]) -> Following[R]:
        """Return the part of that key; create it if there is none. All parts of one kind are of one type."""
        with self._guard:
            if key not in self._kept:
                self._kept[key] = Following(make())
            self._kept.move_to_end(key)
            return self._kept[key]

    def trim(self) -> None:
        """Drop the least recently used parts until the rest fits; the newest always stays."""
        with self._guard:
            total = sum(following.resident.bytes for following in self._kept.values())
            while total > self._budget and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                total -= dropped.resident.bytes


LIVE = "JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version"


class UpdatablePart(CachedPart, Protocol):
    """A part that can drop single chunks."""

    def remove(self, numbers: Iterable[int]) -> None: ...


F = TypeVar("F", bound=UpdatablePart)

Load = Callable[[F, str, Sequence[Any]], None]
"""Reads chunks into a resident: those that a condition over `c.seq`, given with its values, lets through."""


def behind(connection: Connection, tenant_id: str, following: Following[F]) -> int:
    """Count the changes that the part has not seen."""
    return max(0, read_sequence(connection, tenant_id) - following.sequence)


def catch_up(
    connection: Connection,
    tenant_id: str,
    kb_id: int,
    following: Following[F],
    empty: Callable[[], F],
    load: Load[F],
    *,
    arrivals: Sequence[str] = ("upsert",),
) -> None:
    """Apply what was committed since the last call."""
    newest = read_sequence(connection, tenant_id)
    if newest <= following.sequence:
        return
    if _reaches_back(connection, tenant_id, following.sequence):
        gone = connection.execute(
            "SELECT chunk_seq FROM changes WHERE tenant_id = ? AND seq > ? AND kb_id = ? AND operation = 'tombstone'",
            (tenant_id, following.sequence, kb_id),
        ).fetchall()
        following.resident.remove(number for (number,) in gone)
        changed = (
            "SELECT chunk_seq FROM changes WHERE tenant_id = ? AND seq > ? AND kb_id = ? "
            f"AND operation IN ({', '.join('?' * len(arrivals))})"
        )
        load(following.resident, f"c.seq IN ({changed})", (tenant_id, following.sequence, kb_id, *arrivals))
    else:
        fresh = empty()
        load(fresh, "TRUE", ())
        following.resident = fresh
    following.sequence = newest


def allowed_numbers(connection: Connection, tenant_id: str, kb_id: int, where: Filter) -> NDArray[np.int64]:
    """Return the numbers of the live chunks that a filter lets through."""
    parameters: list[Any] = [tenant_id, kb_id]
    filtered = connection.dialect.condition(where, parameters)
    rows = connection.execute(
        f"SELECT c.seq FROM chunks c {LIVE} WHERE c.tenant_id = ? AND c.kb_id = ? AND {filtered}", parameters
    )
    return np.fromiter((number for (number,) in rows), np.int64)


def _reaches_back(connection: Connection, tenant_id: str, sequence: int) -> bool:
    # The feed is shortened from time to time; a part that is older than its start is loaded again.
    oldest = connection.execute("SELECT min(seq) FROM changes WHERE tenant_id = ?", (tenant_id,)).fetchone()[0]
    return sequence > 0 and oldest is not None and oldest <= sequence + 1


def check_query_vector(kb: KnowledgeBase, space: Space, vector: Vector) -> None:
    """Refuse a query vector of another length than those of the Space."""
    if len(vector) != space.dimension:
        raise ModelMismatch(
            f"a query vector of {len(vector)} dimensions cannot search '{kb.name}', "
            f"which was built with {space.model} ({space.dimension})",
            hint=f"set embedding.model to {model_name(space.model)}",
        )
