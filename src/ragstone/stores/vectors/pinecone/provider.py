"""Vectors in Pinecone, and filters in its metadata query language.

Of that language only `$eq`, `$in`, `$nin`, `$and` and `$or` are used, and `$in` and `$nin` only on a list of texts that
every record has: what the others mean for missing fields, lists and mixed types has changed in the past.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from ragstone.core.batches import batched
from ragstone.core.errors import StoreBusy, StoreError
from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, Json, Vector
from ragstone.core.vectors import Capabilities, Health, Isolation, Point, VectorPartition
from ragstone.fetch.calls import Sleep
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import (
    check_dimension,
    check_isolation,
    check_options,
    newest_points,
    real_ids,
    seconds_option,
    unit,
)
from ragstone.stores.vectors.pinecone.index import Index, api_key, find_index, index_settings, make_index, mismatch
from ragstone.stores.vectors.pinecone.records import point_of, prefix_of, upsert_bodies
from ragstone.stores.vectors.rest import Account, RestReply, RestService, numbers
from ragstone.stores.vectors.terms import All, Condition, Has, Lacks, Some, can_say, condition


def metadata_filter(partition: VectorPartition, where: Filter | None) -> Json:
    """Return the condition that a search of this partition puts on every record's metadata."""
    own = [{"tenant_id": {"$eq": partition.tenant_id}}, {"space": {"$eq": partition.space}}]
    return {"$and": [*own, _expression(condition(where))] if where else own}


def _expression(wanted: Condition) -> Json:
    match wanted:
        case Has(terms):
            return {"terms": {"$in": list(terms)}}
        case Lacks(terms):
            return {"terms": {"$nin": list(terms)}}
        case All(parts):
            return {"$and": [_expression(part) for part in parts]}
        case Some(parts):
            return {"$or": [_expression(part) for part in parts]}


API_VERSION = "2026-07"
OPTIONS = ("cloud", "dimension", "environment", "index_name", "region", "timeout", "visible_within")
PAGE = 100
FETCH = 50
"""Ids that are fetched together; they travel in the address, which must not grow too long."""
DELETE = 1000
FIRST_LOOK, LONGEST_LOOK = 0.1, 2.0
"""Seconds between looks whether a write can be found yet."""
WRITTEN = ("x-pinecone-request-lsn", "x-pinecone-lsn-committed")
REACHED = ("x-pinecone-max-indexed-lsn", "x-pinecone-lsn-reconciled")
"""Headers with numbers of the log; which of two names is used depends on the kind of index."""
Query = dict[str, str | int | list[str]]


class PineconeProvider:
    """Implements `core.vectors.VectorProvider`."""

    name = "pinecone"
    capabilities = Capabilities(isolation=frozenset({"namespace", "filter"}), max_dimension=20_000, max_k=10_000)

    def __init__(self, adapter: Adapter, folder: Path, isolation: Isolation, *, sleep: Sleep = asyncio.sleep) -> None:
        check_isolation(self.name, isolation, self.capabilities)
        check_options(adapter, OPTIONS)
        self._settings = index_settings(adapter, seconds_option(adapter, "visible_within", 60.0))
        self._isolation = isolation
        self._sleep = sleep
        key = api_key(adapter)
        account = Account(
            name=self.name,
            headers={"Api-Key": key, "X-Pinecone-Api-Version": API_VERSION},
            secret=key,
            timeout=seconds_option(adapter, "timeout", 30.0),
            key_hint="check store.vectors.api_key, or PINECONE_API_KEY",
            address_hint="check store.vectors: url, api_key and options.index_name, cloud and region",
        )
        self._service = RestService(account, sleep=sleep)
        self._index: Index | None = None

    def can_filter(self, where: Filter) -> bool:
        return can_say(where)

    async def open(self, partition: VectorPartition) -> None:
        self._index = await make_index(self._service, self._settings, partition.dimension, self._sleep)
        self._check_fit(self._index, partition)

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        latest = newest_points(partition, points)
        if not latest:
            return
        if await self._find(partition) is None:
            await self.open(partition)
        written = 0
        bodies = upsert_bodies(partition, latest, self._namespace(partition))
        # Writing numbers as text takes long enough to keep others waiting.
        while (body := await asyncio.to_thread(next, bodies, None)) is not None:
            answer = await self._call(partition, "POST", "/vectors/upsert", body)
            written = max(written, _number(answer, *WRITTEN))
        await self._until_found(partition, written, latest[-1])

    async def delete(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> None:
        if await self._find(partition) is None:
            return
        written = 0
        for some in batched(real_ids(chunk_ids), DELETE):
            body = {
                "namespace": self._namespace(partition),
                "ids": [prefix_of(partition) + chunk_id for chunk_id in some],
            }
            answer = await self._call(partition, "POST", "/vectors/delete", body)
            written = max(written, _number(answer, *WRITTEN))
        await self._until_found(partition, written)

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        check_dimension(partition, len(vector))
        if k < 1 or await self._find(partition) is None:
            return []
        body = self._query(partition, numbers(unit(vector)), min(k, self.capabilities.max_k))
        body["filter"] = metadata_filter(partition, where)
        answer = await self._call(partition, "POST", "/query", body)
        prefix = prefix_of(partition)
        with self._service.reading(self._settings.control):
            found = [
                Candidate(hit["id"].removeprefix(prefix), max(-1.0, min(1.0, float(hit.get("score", 0)))))
                for hit in answer.body.get("matches") or ()
                if hit["id"].startswith(prefix)
            ]
        return sorted(found, key=lambda candidate: -candidate.score)

    async def read(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[Point]:
        if await self._find(partition) is None:
            return []
        points: list[Point] = []
        for some in batched(real_ids(chunk_ids), FETCH):
            ids = [prefix_of(partition) + chunk_id for chunk_id in some]
            query: Query = {"namespace": self._namespace(partition), "ids": ids}
            answer = await self._call(partition, "GET", "/vectors/fetch", query=query)
            with self._service.reading(self._settings.control):
                points += [point_of(partition, stored) for stored in (answer.body.get("vectors") or {}).values()]
        return points

    async def ids(self, partition: VectorPartition) -> AsyncIterator[Sequence[str]]:
        if await self._find(partition) is None:
            return
        prefix = prefix_of(partition)
        query: Query = {"namespace": self._namespace(partition), "prefix": prefix, "limit": PAGE}
        while True:
            answer = await self._call(partition, "GET", "/vectors/list", query=query)
            with self._service.reading(self._settings.control):
                page = [record["id"].removeprefix(prefix) for record in answer.body.get("vectors") or ()]
                token = (answer.body.get("pagination") or {}).get("next")
            yield page
            if not token:
                return
            if token == query.get("paginationToken"):
                raise self._service.failure(self._settings.control, "lists the same page again and again")
            query["paginationToken"] = token

    async def count(self, partition: VectorPartition) -> int:
        # A serverless index counts whole namespaces only, and a tenant's Spaces share one.
        return sum([len(page) async for page in self.ids(partition)])

    async def drop(self, partition: VectorPartition) -> None:
        known = [chunk_id async for page in self.ids(partition) for chunk_id in page]
        await self.delete(partition, known)

    async def health(self) -> Health:
        index = await find_index(self._service, self._settings)
        name = self._settings.name
        state = f"holds vectors of {index.dimension} dimensions" if index else "is made when it is first needed"
        return Health(f"API {API_VERSION}", f"index '{name}' {state}")

    async def close(self) -> None:
        await self._service.close()

    def _namespace(self, partition: VectorPartition) -> str:
        return f"tenant_{partition.tenant_id}" if self._isolation == "namespace" else "__default__"

    def _query(self, partition: VectorPartition, vector: list[float], k: int) -> dict[str, Json]:
        return {
            "namespace": self._namespace(partition),
            "vector": vector,
            "topK": k,
            "includeValues": False,
            "includeMetadata": False,
        }

    async def _find(self, partition: VectorPartition) -> Index | None:
        if self._index is None:
            self._index = await find_index(self._service, self._settings)
        if self._index is not None:
            self._check_fit(self._index, partition)
        return self._index

    def _check_fit(self, index: Index, partition: VectorPartition) -> None:
        if index.dimension != partition.dimension:
            raise mismatch(self._settings.name, index.dimension, partition.dimension)

    async def _call(
        self, partition: VectorPartition, method: str, path: str, body: Json = None, *, query: Query | None = None
    ) -> RestReply:
        index = await self._find(partition)
        if index is None:
            raise self._service.failure(self._settings.control, f"has lost index '{self._settings.name}'")
        try:
            answer = await self._service.call(method, index.url + path, body, query=query, expect={404})
        except StoreError:
            # The index may have been recreated elsewhere: the next call asks where it is.
            self._index = None
            raise
        if answer.status != 404:
            return answer
        # Either the index is gone, or nothing was ever written to the namespace: both hold nothing.
        self._index = None
        return RestReply(404, {}, {})

    async def _until_found(self, partition: VectorPartition, written: int, last: Point | None = None) -> None:
        """Return when searches have reached a write: by its number in the log or, without one, by a point of it."""
        if not written and last is None:
            return
        body = self._query(partition, [1.0] + [0.0] * (partition.dimension - 1), 1)
        body["filter"] = metadata_filter(partition, None)
        if last is not None:
            body["filter"]["$and"].append({"chunk_id": {"$eq": last.chunk_id}})
        waited, pause = 0.0, FIRST_LOOK
        while not _has_reached(await self._call(partition, "POST", "/query", body), written):
            if waited >= self._settings.patience:
                raise StoreBusy(
                    f"pinecone took a write but did not show it within {self._settings.patience:g} s",
                    hint="try again, or raise store.vectors.options.visible_within",
                )
            await self._sleep(pause)
            waited, pause = waited + pause, min(2 * pause, LONGEST_LOOK)


def _has_reached(answer: RestReply, written: int) -> bool:
    return _number(answer, *REACHED) >= written if written else bool(answer.body.get("matches"))


def _number(answer: RestReply, *names: str) -> int:
    for name in names:
        value = answer.headers.get(name, "")
        if value.isascii() and value.isdigit() and len(value) < 20:
            return int(value)
    return 0
