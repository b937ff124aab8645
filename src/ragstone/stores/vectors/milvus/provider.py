"""Vectors in Milvus: a server, or milvus-lite in a folder when no address is given.

A write returns when the server's readers have it, so that reads need not wait: Milvus would otherwise make every search
wait for its clock to tick. See docs/reference/stores/milvus.md for what that promises.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ragstone.core.batches import batched
from ragstone.core.errors import StoreBusy, StoreError
from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, Vector
from ragstone.core.vectors import Capabilities, Health, Isolation, Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import check_dimension, check_isolation, newest_points, real_ids
from ragstone.stores.vectors.milvus.calls import LARGEST_EF, Absent, MilvusCalls, read_options
from ragstone.stores.vectors.milvus.filters import EVERYTHING, NOTHING, can_translate, expression
from ragstone.stores.vectors.milvus.rows import (
    BATCH_ROWS,
    Row,
    Scope,
    among,
    batch_rows,
    drop,
    make,
    physical_id,
    point_of,
    row_of,
    scope_of,
)

PAGE = 16_384
"""Milvus returns no more rows for one call."""
LOOSE = 2000
"""Rows that are written before a server is told to put them away. It gives some 5,000 that lie about a coarse index,
which finds 8 of 10 under a condition that 1 % of them pass, and no graph to those put away by less than 1,024."""
MOST_LOOSE = 4000
"""From here on a write waits until the server takes the order, which it does once in ten seconds by default."""
LOOSE_EMBEDDED = 500
"""The same for milvus-lite, which searches them twenty times as slowly until then."""
ATTEMPTS = 15
"""A second apart."""
HEX = "0123456789abcdef"


class MilvusProvider:
    """Implements `core.vectors.VectorProvider`."""

    name = "milvus"

    def __init__(self, adapter: Adapter, folder: Path, isolation: Isolation) -> None:
        self._options = read_options(adapter)
        self._timeout = self._options.timeout
        self._calls = MilvusCalls(adapter, folder, self._options)
        self.capabilities = Capabilities(
            isolation=frozenset({"collection", "namespace", "filter"}),
            max_dimension=32_768,
            max_k=PAGE,
            exact=self._calls.embedded,
        )
        check_isolation(self.name, isolation, self.capabilities)
        self._isolation = isolation
        self._loose: Counter[str] = Counter()

    def can_filter(self, where: Filter) -> bool:
        # milvus-lite goes through rows, vectors and all, one by one in Python: the ledger is quicker.
        return not self._calls.embedded and can_translate(where)

    async def open(self, partition: VectorPartition) -> None:
        scope = self._scope(partition)
        dimension = await self._calls.ask(
            lambda client: make(
                client, scope, partition.dimension, embedded=self._calls.embedded, timeout=self._timeout
            )
        )
        check_dimension(partition, dimension, what="an index")

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        scope, newest = self._scope(partition), newest_points(partition, points)
        for rows in await asyncio.to_thread(lambda: list(batch_rows(row_of(partition, point) for point in newest))):
            await self._calls.ask(partial(self._write, scope, rows))
        await self._settle(scope, len(newest))

    async def delete(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> None:
        scope = self._scope(partition)
        ids = [physical_id(partition, chunk_id) for chunk_id in real_ids(chunk_ids)]
        try:
            for batch in batched(ids, BATCH_ROWS):
                await self._remove(scope, among(batch))
            await self._settle(scope, len(ids))
        except Absent:
            return

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        check_dimension(partition, len(vector))
        if k < 1:
            return []
        scope = self._scope(partition)
        k = min(k, PAGE)
        ef = min(max(self._options.ef, 2 * k), LARGEST_EF)
        try:
            (hits,) = await self._calls.ask(
                lambda client: client.search(
                    scope.collection,
                    data=[vector],
                    limit=k,
                    filter=scope.narrow(expression(where) if where is not None else ""),
                    search_params={} if self._calls.embedded else {"params": {"ef": ef}},
                    output_fields=["chunk_id"],
                    **self._reading(scope),
                ),
                collection=scope.collection,
            )
        except Absent:
            return []
        return [Candidate(hit["entity"]["chunk_id"], max(-1.0, min(1.0, hit["distance"]))) for hit in hits]

    async def read(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[Point]:
        scope = self._scope(partition)
        ids = [physical_id(partition, chunk_id) for chunk_id in real_ids(chunk_ids)]
        rows = [
            row
            for batch in batched(ids, BATCH_ROWS)
            for row in await self._query(scope, among(batch), ["chunk_id", "vector", "payload"])
        ]
        return [point_of(row) for row in rows]

    async def ids(self, partition: VectorPartition) -> AsyncIterator[Sequence[str]]:
        scope = self._scope(partition)
        # Keys are hexadecimal and evenly spread, so what does not fit one answer is asked for digit by digit.
        pending = [""]
        while pending:
            beginning = pending.pop()
            condition = scope.narrow(f'id like "{beginning}%"' if beginning else EVERYTHING)
            rows = await self._query(scope, condition, ["chunk_id"], limit=PAGE)
            if len(rows) < PAGE:
                yield [row["chunk_id"] for row in rows]
            else:
                pending += [beginning + digit for digit in HEX]

    async def count(self, partition: VectorPartition) -> int:
        scope = self._scope(partition)
        return sum([int(row["count(*)"]) for row in await self._query(scope, scope.condition, ["count(*)"])])

    async def drop(self, partition: VectorPartition) -> None:
        scope = self._scope(partition)
        if self._isolation == "collection":
            await self._calls.ask(lambda client: drop(client, scope, timeout=self._timeout))
            return
        try:
            await self._remove(scope, scope.condition)
            await self._settle(scope, 1)
        except Absent:
            return
        if left := await self.count(partition):
            raise StoreError(
                f"Milvus at {self._calls.address} kept {left} of the vectors that it was told to remove",
                hint="try again; if it stays so, look into the log of the server",
            )

    async def health(self) -> Health:
        version = await self._calls.ask(lambda client: client.get_server_version(timeout=self._timeout))
        return Health(str(version), f"{'in this process, ' if self._calls.embedded else ''}at {self._calls.address}")

    async def close(self) -> None:
        await self._calls.close()

    def _scope(self, partition: VectorPartition) -> Scope:
        return scope_of(partition, self._isolation)

    def _reading(self, scope: Scope) -> dict[str, Any]:
        return {
            "partition_names": scope.partitions,
            "consistency_level": "Strong" if self._options.strong_reads else "Bounded",
            "timeout": self._timeout,
        }

    async def _query(self, scope: Scope, condition: str, fields: list[str], **more: Any) -> list[dict[str, Any]]:
        try:
            return await self._calls.ask(
                lambda client: list(
                    client.query(
                        scope.collection, filter=condition, output_fields=fields, **self._reading(scope), **more
                    )
                ),
                collection=scope.collection,
            )
        except Absent:
            return []

    def _write(self, scope: Scope, rows: list[Row], client: Any) -> None:
        client.upsert(scope.collection, rows, partition_name=scope.partition or "", timeout=self._timeout)

    async def _remove(self, scope: Scope, condition: str) -> None:
        await self._calls.ask(
            lambda client: client.delete(
                scope.collection, filter=condition, partition_name=scope.partition, timeout=self._timeout
            ),
            collection=scope.collection,
        )

    async def _settle(self, scope: Scope, changed: int) -> None:
        """Wait until what was written can be read by all, and flush it when there is much of it."""
        if changed and not self._calls.embedded:
            await self._calls.ask(
                lambda client: client.query(
                    scope.collection,
                    filter=NOTHING,
                    output_fields=["id"],
                    consistency_level="Strong",
                    timeout=self._timeout,
                ),
                collection=scope.collection,
            )
        self._loose[scope.collection] += changed
        if self._loose[scope.collection] >= (LOOSE_EMBEDDED if self._calls.embedded else LOOSE):
            await self._put_away(scope)

    async def _put_away(self, scope: Scope) -> None:
        for _ in range(ATTEMPTS):
            try:
                await self._calls.ask(
                    lambda client: client.flush(scope.collection, timeout=self._timeout, retry_on_rate_limit=False)
                )
            except StoreBusy:
                # Servers limit how often this may be asked. Nothing is lost, and the next write asks again.
                if self._loose[scope.collection] < MOST_LOOSE:
                    return
                await asyncio.sleep(1.0)
            else:
                self._loose[scope.collection] = 0
                return
