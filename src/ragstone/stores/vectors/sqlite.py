"""Dense search over the vectors in the ledger's own file: an exact scan of a matrix in memory.

The matrix follows the ledger's change feed. Before each search it catches up with what this or any other
process has committed, so a read after a commit is never stale. An accelerator for very large kbs would be
another resident in the matrix's partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, KnowledgeBase, Matrix, Space, Vector
from ragstone.stores.indexes import (
    LIVE,
    Following,
    IndexCache,
    allowed_numbers,
    best_first,
    catch_up,
    check_query_vector,
    largest,
)
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.ledger.sqlite.tenant_file import TenantFile
from ragstone.stores.sql.database import Connection

Product = Callable[[Matrix, Vector], Vector]

TINY = 2 * 1024 * 1024
"""Bytes that one core has through before another would have begun."""

PATIENCE = 50
"""Scans on one core before all are tried again."""

FORGETTING = 1.05
"""The factor by which the best time of one core grows with each measurement: machines change."""


class Scan:
    """Product of a matrix and a vector. Any thread may call it; what it knows is a guess anyway."""

    def __init__(
        self, together: Product = np.matmul, alone: Product = np.vecdot, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._together = together
        self._alone = alone
        self._clock = clock
        self._best_alone = float("inf")
        self._left_alone = 1

    def __call__(self, rows: Matrix, vector: Vector) -> Vector:
        size = rows.nbytes
        if size <= TINY:
            return self._alone(rows, vector)
        started = self._clock()
        if self._left_alone > 0:
            self._left_alone -= 1
            scores = self._alone(rows, vector)
            self._best_alone = min(self._best_alone * FORGETTING, (self._clock() - started) / size)
            return scores
        scores = self._together(rows, vector)
        if (self._clock() - started) / size > self._best_alone:
            self._left_alone = PATIENCE
        return scores


scan = Scan()
"""The one of this process: all matrices share the machine."""

FIRST_CAPACITY = 1024

ROUNDING = 1e-5
"""More than two ways of adding up the dot product of unit vectors differ by in float32."""


class VectorMatrix:
    """Rows of unit vectors, each known by a number and an id. Not thread-safe: its owner locks."""

    def __init__(self, dimension: int) -> None:
        self._rows: Matrix = np.empty((0, dimension), np.float32)
        self._numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self._ids: list[str] = []
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def bytes(self) -> int:
        """Return its size in memory, ids included."""
        return self._rows.nbytes + self._numbers.nbytes + 200 * len(self._ids)

    def put(self, numbers: Sequence[int], ids: Sequence[str], vectors: Matrix) -> None:
        """Add rows; a number that is already there is replaced."""
        self.remove(number for number in numbers if number in self._row_of)
        size = len(self._ids)
        self._reserve(size + len(numbers))
        self._rows[size : size + len(numbers)] = vectors
        self._numbers[size : size + len(numbers)] = numbers
        self._ids.extend(ids)
        self._row_of.update(zip(numbers, range(size, size + len(numbers)), strict=True))

    def remove(self, numbers: Iterable[int]) -> None:
        """Drop rows; the last row moves to the gap, so that the scan stays dense."""
        for number in list(numbers):
            row = self._row_of.pop(number, None)
            if row is None:
                continue
            last = len(self._ids) - 1
            if row != last:
                self._rows[row] = self._rows[last]
                self._numbers[row] = self._numbers[last]
                self._ids[row] = self._ids[last]
                self._row_of[int(self._numbers[row])] = row
            self._ids.pop()

    def nearest(self, vector: Vector, k: int, allowed: NDArray[np.int64] | None = None) -> list[Candidate]:
        """Return the k rows with the largest dot product, best first, ties by id; only allowed numbers if given."""
        size = len(self._ids)
        if allowed is None:
            near = largest(scan(self._rows[:size], vector), k, ROUNDING)
        else:
            rows = np.flatnonzero(np.isin(self._numbers[:size], allowed, kind="sort"))
            near = rows[largest(scan(self._rows[rows], vector), k, ROUNDING)]
        # The fast product rounds by partition in the matrix; added up row by row, equal vectors score the same.
        scores = np.vecdot(self._rows[near], vector)
        return best_first(self._ids, near, scores, k)

    def _reserve(self, size: int) -> None:
        capacity = len(self._rows)
        if size <= capacity:
            return
        # A quarter more each time: doubling would leave up to half of a large matrix unused.
        grown = max(FIRST_CAPACITY, size, capacity + capacity // 4)
        rows = np.empty((grown, self._rows.shape[1]), np.float32)
        rows[:capacity] = self._rows
        numbers = np.empty(grown, np.int64)
        numbers[:capacity] = self._numbers
        self._rows, self._numbers = rows, numbers


LOAD_ROWS = 4096
SMALL = 32 * 1024 * 1024
"""A matrix up to this size takes about a millisecond to scan."""


class SqliteVectorIndex:
    """Implements `core.protocols.VectorIndex`."""

    def __init__(self, ledger: SqliteLedger, cache: IndexCache) -> None:
        self._ledger = ledger
        self._cache = cache

    async def search(
        self, tenant: str, kb: KnowledgeBase, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        space = kb.space
        if space is None:
            return []
        check_query_vector(kb, space, vector)
        found = self._at_once(tenant, space, vector, k) if where is None else None
        if found is not None:
            return found
        async with self._ledger.file(tenant) as file:
            following, version = self._following(file, space), file.version()
            return await file.read(lambda db: self._search(db, file, following, version, kb, space, vector, k, where))

    def _at_once(self, tenant: str, space: Space, vector: Vector, k: int) -> list[Candidate] | None:
        """Scan on the calling thread: a small matrix is through before another thread would have begun."""
        file = self._ledger.at_hand(tenant)
        if file is None:
            return None
        following = self._following(file, space)
        if following.resident.bytes > SMALL or not following.lock.acquire(blocking=False):
            return None
        try:
            return following.resident.nearest(vector, k) if following.version == file.version() else None
        finally:
            following.lock.release()

    def _following(self, file: TenantFile, space: Space) -> Following[VectorMatrix]:
        return self._cache.get(("vectors", file.tenant_id, space.id), lambda: VectorMatrix(space.dimension))

    def _search(
        self,
        connection: Connection,
        file: TenantFile,
        following: Following[VectorMatrix],
        version: int,
        kb: KnowledgeBase,
        space: Space,
        vector: Vector,
        k: int,
        where: Filter | None,
    ) -> list[Candidate]:
        allowed = allowed_numbers(connection, file.tenant_id, kb.id, where) if where else None
        with following.lock:
            before = following.sequence
            catch_up(
                connection,
                file.tenant_id,
                kb.id,
                following,
                lambda: VectorMatrix(space.dimension),
                lambda matrix, which, values: _load(connection, space, matrix, which, values),
                # A vector may come long after its chunk: while a Space is built, or when a model is back.
                arrivals=("upsert", "vector"),
            )
            # Read before the snapshot was taken: a commit in between makes it old, never wrong.
            following.version = version
            found = following.resident.nearest(vector, k, allowed)
        if following.sequence != before:
            self._cache.trim()
        return found


def _load(connection: Connection, space: Space, matrix: VectorMatrix, which: str, values: Sequence[Any]) -> None:
    cursor = connection.execute(
        f"SELECT c.seq, c.id, v.vector FROM vectors v JOIN chunks c ON c.seq = v.chunk_seq {LIVE} "
        f"WHERE v.space_id = ? AND {which.replace('c.seq', 'v.chunk_seq')}",
        (space.id, *values),
    )
    while rows := cursor.fetchmany(LOAD_ROWS):
        numbers, ids, blobs = zip(*rows, strict=True)
        halves = np.frombuffer(b"".join(blobs), np.float16).reshape(len(blobs), -1)
        matrix.put(numbers, ids, halves.astype(np.float32))
