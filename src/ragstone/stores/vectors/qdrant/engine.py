"""Qdrant as Ragstone uses it, whichever way it runs, and the two ways that go through the official client.

The client has the same methods for a server, where they are awaited, and for its local mode, where they are not:
`Calls` hides that, and the errors of each.
"""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ragstone.core.errors import StoreBusy, StoreError
from ragstone.core.vectors import Health, Isolation, Words
from ragstone.stores.vectors.qdrant.filters import Condition, within
from ragstone.stores.vectors.qdrant.points import DENSE, WORDS, QdrantPoint, chunk_id_of, from_record, vectors_by_name
from ragstone.stores.vectors.qdrant.resident import Resident, in_use

if TYPE_CHECKING:
    from qdrant_client.local.qdrant_local import QdrantLocal


M = 16
EF_CONSTRUCT = 100


class CollectionMissing(Exception):
    """The collection is not there; the caller knows what that means."""


class Form(NamedTuple):
    """The parameters that a collection was made with."""

    dimension: int
    words: bool
    """True when it holds words beside the vectors; the vectors then have a name as well."""


class IdPage(NamedTuple):
    """Some chunk ids, and where to go on; None at the end."""

    chunk_ids: list[str]
    offset: Any


class QdrantEngine(Protocol):
    """Qdrant as the provider uses it. Every call on a collection that is not there raises `CollectionMissing`."""

    exact: bool

    async def form(self, collection: str) -> Form: ...

    async def create(self, collection: str, form: Form, isolation: Isolation) -> None:
        """Make a collection, or finish the making of one; who comes second finds it made."""
        ...

    async def upsert(self, collection: str, points: Sequence[QdrantPoint], *, words: bool) -> None: ...

    async def delete(self, collection: str, ids: Sequence[str] | None = None, where: Condition | None = None) -> None:
        """Remove those of the named points, or of all, that pass the condition."""
        ...

    async def search(
        self, collection: str, query: list[float] | Words, k: int, where: Condition | None, *, words: bool
    ) -> list[tuple[str, float]]:
        """Chunk ids with their score, best first. `words` says of what form the collection is."""
        ...

    async def retrieve(self, collection: str, ids: Sequence[str]) -> list[QdrantPoint]: ...

    async def page(self, collection: str, where: Condition | None, size: int, offset: Any) -> IdPage: ...

    async def count(self, collection: str, where: Condition | None) -> int: ...

    async def drop(self, collection: str) -> None: ...

    async def health(self) -> Health: ...

    async def close(self) -> None: ...


class Calls(Protocol):
    """Makes requests to a client and says what its errors mean."""

    indexes_payload: bool

    async def read(self, collection: str, request: Callable[[Any], Any]) -> Any: ...

    async def write(self, collection: str, request: Callable[[Any], Any]) -> Any:
        """Make a request that may be made twice; its effect is durable when this returns."""
        ...

    async def health(self) -> Health: ...

    async def close(self) -> None: ...


class ClientEngine:
    """Implements `Engine` with the official client."""

    def __init__(self, calls: Calls, *, exact: bool = False, asks_for_exact: bool = False) -> None:
        self._calls = calls
        self.exact = exact or asks_for_exact
        self._asks_for_exact = asks_for_exact
        from qdrant_client import models

        self._models = models

    async def form(self, collection: str) -> Form:
        info = await self._calls.read(collection, lambda client: client.get_collection(collection))
        params = info.config.params
        words = WORDS in (params.sparse_vectors or {})
        vectors: Any = params.vectors
        if isinstance(vectors, dict):
            vectors = vectors.get(DENSE)
        if getattr(vectors, "distance", None) != "Cosine":
            raise StoreError(
                f"the collection {collection} in Qdrant was not made by Ragstone: it has no cosine vectors",
                hint="delete or rename it, or give Ragstone a Qdrant of its own",
            )
        return Form(int(vectors.size), words)

    async def create(self, collection: str, form: Form, isolation: Isolation) -> None:
        # Where every search is a tenant's, one graph for all is of no use: Qdrant then builds one for each.
        shared = isolation == "namespace"
        dense = self._models.VectorParams(size=form.dimension, distance=self._models.Distance.COSINE)
        sparse = {WORDS: self._models.SparseVectorParams(modifier=self._models.Modifier.IDF)}
        try:
            await self._calls.write(
                collection,
                lambda client: client.create_collection(
                    collection,
                    vectors_config={DENSE: dense} if form.words else dense,
                    sparse_vectors_config=sparse if form.words else None,
                    hnsw_config=self._models.HnswConfigDiff(
                        m=0 if shared else M, ef_construct=EF_CONSTRUCT, payload_m=M if shared else None
                    ),
                ),
            )
        except StoreBusy:
            raise
        except StoreError:
            # Another process was faster, or the answer to an earlier attempt was lost.
            if await self._is_missing(collection):
                raise
        if isolation != "collection" and self._calls.indexes_payload:
            await self._index(collection, "tenant_id", is_tenant=shared)
            await self._index(collection, "space", is_tenant=False)

    async def upsert(self, collection: str, points: Sequence[QdrantPoint], *, words: bool) -> None:
        structs = [
            self._models.PointStruct(
                id=point.id,
                vector=vectors_by_name(point, self._sparse) if words else point.vector,
                payload=point.payload,
            )
            for point in points
        ]
        await self._update(collection, lambda client: client.upsert(collection, structs, wait=True))

    async def delete(self, collection: str, ids: Sequence[str] | None = None, where: Condition | None = None) -> None:
        selector: Any = self._models.PointIdsList(points=list(ids or ()))
        if where is not None:
            selector = self._models.FilterSelector(filter=self._filter(within(ids, where)))
        await self._update(collection, lambda client: client.delete(collection, selector, wait=True))

    async def search(
        self, collection: str, query: list[float] | Words, k: int, where: Condition | None, *, words: bool
    ) -> list[tuple[str, float]]:
        by_word = isinstance(query, Words)
        using = WORDS if by_word else DENSE if words else None
        found = await self._calls.read(
            collection,
            lambda client: client.query_points(
                collection,
                query=self._sparse(query) if isinstance(query, Words) else query,
                using=using,
                limit=k,
                query_filter=self._filter(where),
                search_params=self._models.SearchParams(exact=True) if self._asks_for_exact and not by_word else None,
                with_payload=["chunk_id"],
            ),
        )
        return [(name, hit.score) for hit in found.points if (name := chunk_id_of(hit.payload))]

    async def retrieve(self, collection: str, ids: Sequence[str]) -> list[QdrantPoint]:
        records = await self._calls.read(
            collection, lambda client: client.retrieve(collection, list(ids), with_payload=True, with_vectors=True)
        )
        return [from_record(record) for record in records]

    async def page(self, collection: str, where: Condition | None, size: int, offset: Any) -> IdPage:
        records, offset = await self._calls.read(
            collection,
            lambda client: client.scroll(
                collection,
                scroll_filter=self._filter(where),
                limit=size,
                offset=offset,
                with_payload=["chunk_id"],
                with_vectors=False,
            ),
        )
        return IdPage([name for record in records if (name := chunk_id_of(record.payload))], offset)

    async def count(self, collection: str, where: Condition | None) -> int:
        counted = await self._calls.read(
            collection, lambda client: client.count(collection, count_filter=self._filter(where), exact=True)
        )
        return int(counted.count)

    async def drop(self, collection: str) -> None:
        await self._calls.write(collection, lambda client: client.delete_collection(collection))

    async def health(self) -> Health:
        return await self._calls.health()

    async def close(self) -> None:
        await self._calls.close()

    async def _index(self, collection: str, field: str, *, is_tenant: bool) -> None:
        schema = self._models.KeywordIndexParams(
            type=self._models.KeywordIndexType.KEYWORD, is_tenant=True if is_tenant else None
        )
        await self._update(collection, lambda client: client.create_payload_index(collection, field, schema, wait=True))

    async def _update(self, collection: str, request: Callable[[Any], Awaitable[Any]]) -> None:
        result = await self._calls.write(collection, request)
        if result.status != "completed":
            raise StoreBusy(
                f"Qdrant has taken a change of {collection} in, but not made it yet",
                hint="try again later, or raise store.vectors.options.timeout",
            )

    async def _is_missing(self, collection: str) -> bool:
        try:
            await self.form(collection)
        except CollectionMissing:
            return True
        return False

    def _sparse(self, words: Words) -> Any:
        return self._models.SparseVector(indices=list(words.numbers), values=list(words.weights))

    def _filter(self, where: Condition | None) -> Any:
        return None if where is None else self._models.Filter.model_validate(where)


class LocalCalls:
    """Implements `Calls` on a folder."""

    indexes_payload = False

    def __init__(self, folder: Path) -> None:
        self._resident = Resident(folder, _open_client, _close_client)

    async def read(self, collection: str, request: Callable[[Any], Any]) -> Any:
        return await self._resident.run(lambda client: _call(client, collection, request))

    async def write(self, collection: str, request: Callable[[Any], Any]) -> Any:
        return await self._resident.run(lambda client: _change(client, collection, request))

    async def health(self) -> Health:
        points = await self._resident.run(lambda client: sum(len(held.ids) for held in client.collections.values()))
        version = importlib.metadata.version("qdrant-client")
        return Health(version, f"local mode, {points} vectors in {self._resident.folder}")

    async def close(self) -> None:
        await self._resident.close()


def _call(client: QdrantLocal, collection: str, request: Callable[[Any], Any]) -> Any:
    try:
        return request(client)
    except ValueError as error:
        if collection not in client.collections:
            raise CollectionMissing from error
        raise StoreError(f"Qdrant's local mode refused a request: {error}") from error


def _change(client: QdrantLocal, collection: str, request: Callable[[Any], Any]) -> Any:
    result = _call(client, collection, request)
    _write_ahead(client, collection)
    return result


def _write_ahead(client: QdrantLocal, collection: str) -> None:
    """Let single commits go to a write-ahead log, and sync it so that it survives a power cut."""
    known = client.collections.get(collection)
    if known is None or known.storage is None:
        return
    known.storage.storage.execute("PRAGMA journal_mode=WAL")
    known.storage.storage.execute("PRAGMA synchronous=NORMAL")
    ahead = Path(f"{known.storage.location}-wal")
    if ahead.exists():
        with ahead.open("rb") as file:
            os.fsync(file.fileno())


def _open_client(folder: Path) -> QdrantLocal:
    # Not `QdrantClient`: that one closes itself when it is collected, in a forked child as well.
    from qdrant_client.local.qdrant_local import QdrantLocal

    # Our documentation says what local mode is for; it need not be said on every start.
    warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)
    index = folder / "meta.json"
    if index.exists() and not index.stat().st_size:
        index.unlink()  # a first start that was killed: nothing was stored yet
    try:
        client = QdrantLocal(str(folder))
    except RuntimeError as error:
        raise in_use(folder) from error
    for collection in client.collections:
        _write_ahead(client, collection)
    return client


def _close_client(client: QdrantLocal) -> None:
    client.close()
