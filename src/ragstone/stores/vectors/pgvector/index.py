"""Dense search in the PostgreSQL ledger's own table of vectors.

A small Space, or a filter that leaves little of a large one, is sorted exactly. A large Space has an approximate index
(see `pgvector_indexes`), which is asked until enough of what it finds is live and passes the filter; what it cannot
give is given by the exact sort.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ragstone.core.errors import StoreBusy
from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, KnowledgeBase, Space, Vector
from ragstone.stores.indexes import LIVE, IndexCache, check_query_vector
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import part
from ragstone.stores.vectors.checks import unit
from ragstone.stores.vectors.pgvector.maintenance import Order, PgVectorOptions, orders, serving, tend

SPARE = 50
"""The fewest extra candidates: some may be staged, and equals are told apart by their ids."""
MOST_EF = 1_000
ONLY_BY_INDEX = ("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin")
"""Ways to answer that are switched off: the planner cannot know how good the order of an approximate index is."""


class PgVectorIndex:
    """Implements `core.protocols.VectorIndex`."""

    def __init__(self, ledger: PostgresLedger, cache: IndexCache, options: Mapping[str, Any] | None = None) -> None:
        self._ledger = ledger
        self._options = PgVectorOptions.parse(options or {})

    def serve(self) -> None:
        """Become the ledger's own index: the ledger learns the largest dimension, and maintains the index."""
        self._ledger.largest_dimension = self._options.largest_dimension
        self._ledger.tending = (self.maintain,)

    async def search(
        self, tenant: str, kb: KnowledgeBase, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        space = kb.space
        if space is None:
            return []
        check_query_vector(kb, space, vector)
        return await self._ledger.read(tenant, self._search, kb, space, vector, k, where)

    async def maintain(self, tenant: str) -> list[Order]:
        """Make indexes that are missing or were built on too little, drop unneeded ones; return what was done.

        Reads and writes go on. Meant to be called from time to time, never within a transaction.
        """
        if not await self._ledger.read(tenant, orders, self._options):
            return []
        return await self._ledger.outside(tenant, tend, self._options) or []

    async def rebuild(self, tenant: str, kb: KnowledgeBase) -> list[Order]:
        """Rebuild the index of a kb, whatever state it is in; do nothing for a Space that is sorted exactly."""
        if kb.space is None:
            return []
        done = await self._ledger.outside(tenant, tend, self._options, kb.space.id)
        if done is None:
            raise StoreBusy("the indexes of this tenant are being made already", hint="wait for that to end")
        return [order for order in done if order.space_id == kb.space.id]

    def _search(
        self,
        connection: Connection,
        tenant_id: str,
        kb: KnowledgeBase,
        space: Space,
        vector: Vector,
        k: int,
        where: Filter | None,
    ) -> list[Candidate]:
        query = _Query(connection, tenant_id, kb.id, space, vector, where)
        kind = serving(connection, tenant_id, space.id)
        if kind and not query.is_zero and not query.leaves_fewer_than(self._options.exact_below):
            found = query.by_index(k, _settings(kind, k, self._options))
        else:
            found = query.among_nearest(k) if where is None else []
        return found if len(found) == k else query.exactly(k)


class _Query:
    """One search, in the ways that it can be answered."""

    def __init__(
        self, connection: Connection, tenant_id: str, kb_id: int, space: Space, vector: Vector, where: Filter | None
    ) -> None:
        self._connection = connection
        self._space = space
        self._where = where
        self._scope: list[Any] = [tenant_id, kb_id]
        self._vectors, self._chunks = part("vectors", tenant_id), part("chunks", tenant_id)
        self.is_zero = not vector.any()
        self._vector = connection.dialect.pack_vector(unit(vector).astype(np.float16))

    def leaves_fewer_than(self, count: int) -> bool:
        """Return whether the filter leaves few enough rows to sort them all."""
        if self._where is None or not count:
            return False
        parameters = list(self._scope)
        condition = self._condition(parameters)
        row = self._connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {self._chunks} c {LIVE} WHERE {condition} LIMIT ?) AS left_over",
            (*parameters, count),
        ).fetchone()
        return int(row[0]) < count

    def by_index(self, k: int, settings: Mapping[str, str]) -> list[Candidate]:
        """Search an approximate index; it may give up with fewer than k."""
        self._set({**settings, **dict.fromkeys(ONLY_BY_INDEX, "off")})
        distance = f"v.vector::halfvec({int(self._space.dimension)}) <=> ?"
        parameters = [self._vector, *self._scope]
        condition = self._condition(parameters)
        found = self._fetch(
            f"WITH near AS MATERIALIZED (SELECT c.id, {distance} AS distance FROM {self._vectors} v "
            f"JOIN {self._chunks} c ON c.seq = v.chunk_seq {LIVE} "
            f"WHERE {condition} AND v.space_id = {int(self._space.id)} ORDER BY {distance} LIMIT ?) "
            # Plus nothing, or the planner takes the order of what comes for granted.
            "SELECT id, distance FROM near ORDER BY distance + 0, id LIMIT ?",
            (*parameters, self._vector, k + _spare(k), k),
        )
        self._set(dict.fromkeys(ONLY_BY_INDEX, "on"))
        return found

    def among_nearest(self, k: int) -> list[Candidate]:
        """Return the live ones among the nearest of all; fewer than k when too many are not live."""
        parameters = [self._vector, self._space.id, k + _spare(k), *self._scope]
        return self._fetch(
            f"WITH near AS MATERIALIZED (SELECT v.chunk_seq, {self._distance} AS distance FROM {self._vectors} v "
            "WHERE v.space_id = ? ORDER BY distance FETCH FIRST ? ROWS WITH TIES) "
            f"SELECT c.id, near.distance FROM near JOIN {self._chunks} c ON c.seq = near.chunk_seq {LIVE} "
            f"WHERE {self._condition(parameters)} ORDER BY near.distance, c.id LIMIT ?",
            (*parameters, k),
        )

    def exactly(self, k: int) -> list[Candidate]:
        """Return the best of all that are live and pass the filter, sorted exactly."""
        parameters = [self._vector, *self._scope]
        condition = self._condition(parameters)
        return self._fetch(
            f"SELECT c.id, {self._distance} AS distance FROM {self._vectors} v "
            f"JOIN {self._chunks} c ON c.seq = v.chunk_seq {LIVE} WHERE {condition} AND v.space_id = ? "
            "ORDER BY distance, c.id LIMIT ?",
            (*parameters, self._space.id, k),
        )

    @property
    def _distance(self) -> str:
        # From the zero vector nothing is at any angle: all are equally far.
        return "coalesce(nullif(v.vector <=> ?, 'NaN'), 1)"

    def _condition(self, parameters: list[Any]) -> str:
        """Return SQL for what may be found; the filter's values are appended to the parameters, after the scope."""
        filtered = self._connection.dialect.condition(self._where, parameters) if self._where else "TRUE"
        return f"c.tenant_id = ? AND c.kb_id = ? AND {filtered}"

    def _fetch(self, statement: str, parameters: Sequence[Any]) -> list[Candidate]:
        rows = self._connection.execute(statement, parameters)
        return [Candidate(chunk_id, min(1.0, 1.0 - distance)) for chunk_id, distance in rows]

    def _set(self, settings: Mapping[str, str]) -> None:
        """Apply settings to the rest of the transaction."""
        each = ", ".join("set_config(?, ?, true)" for _ in settings)
        self._connection.execute(f"SELECT {each}", [text for pair in settings.items() for text in pair])


def _spare(k: int) -> int:
    return max(k, SPARE)


def _settings(kind: str, k: int, options: PgVectorOptions) -> dict[str, str]:
    """Return the settings of an index scan: in any order, since results are sorted again, until there are enough."""
    if kind == "ivfflat":
        return {"ivfflat.probes": str(options.probes), "ivfflat.iterative_scan": "relaxed_order"}
    ef = min(MOST_EF, max(options.ef_search, k + _spare(k)))
    return {"hnsw.ef_search": str(ef), "hnsw.iterative_scan": "relaxed_order"}
