"""Dense search over the vectors in the ledger's own file: an exact scan of a matrix in memory.

The matrix follows the ledger's change feed. Before each search it catches up with what this or any other
process has committed, so a read after a commit is never stale. An accelerator for very large kbs would be
another resident in the matrix's partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ragstone.core.errors import ModelMismatch
from ragstone.core.filters import Filter
from ragstone.core.model_types import model_name
from ragstone.core.types import Candidate, KnowledgeBase, Space, Vector
from ragstone.stores.index_cache import LIVE, Following, IndexCache, allowed_numbers, catch_up
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.ledger.sqlite.unit import TenantFile
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.matrix import VectorMatrix

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
        if len(vector) != space.dimension:
            raise ModelMismatch(
                f"a query vector of {len(vector)} dimensions cannot search '{kb.name}', "
                f"which was built with {space.model} ({space.dimension})",
                hint=f"set embedding.model to {model_name(space.model)}",
            )
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
        kept = self._cache.get(("vectors", file.tenant_id, space.id), lambda: VectorMatrix(space.dimension))
        return cast("Following[VectorMatrix]", kept)

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
        def empty() -> VectorMatrix:
            return VectorMatrix(space.dimension)

        allowed = allowed_numbers(connection, file.tenant_id, kb.id, where) if where else None
        with following.lock:
            before = following.sequence
            catch_up(
                connection,
                file.tenant_id,
                kb.id,
                following,
                empty,
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
