"""Qdrant's own engine in this process: a shard per collection, in a folder that one process may hold.

Shards are scanned, not indexed: building the graph would stop every other thread of the process for seconds.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ragstone.core.errors import StoreError, StoreFull
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json
from ragstone.core.vectors import Health, Isolation, Words
from ragstone.stores.vectors.qdrant.engine import CollectionMissing, Form, IdPage
from ragstone.stores.vectors.qdrant.filters import Condition, within
from ragstone.stores.vectors.qdrant.points import DENSE, WORDS, QdrantPoint, chunk_id_of, from_record, vectors_by_name
from ragstone.stores.vectors.qdrant.resident import REBUILD, Resident

R = TypeVar("R")
HALF_MADE, HALF_GONE = ".new", ".old"
CONFIG = "edge_config.json"


class EdgeEngine:
    """Implements `Engine` with qdrant-edge."""

    exact = True

    def __init__(self, folder: Path) -> None:
        self._resident = Resident(folder, _Shards, _Shards.close)

    async def form(self, collection: str) -> Form:
        return await self._resident.run(lambda shards: shards.form(collection))

    async def create(self, collection: str, form: Form, isolation: Isolation) -> None:
        await self._resident.run(lambda shards: shards.create(collection, form, isolation))

    async def upsert(self, collection: str, points: Sequence[QdrantPoint], *, words: bool) -> None:
        import qdrant_edge as edge

        def change(shard: edge.EdgeShard) -> None:
            made = [
                edge.Point(point.id, vectors_by_name(point, _sparse) if words else point.vector, point.payload)
                for point in points
            ]
            shard.update(edge.UpdateOperation.upsert_points(made))
            shard.flush()

        await self._with(collection, change)

    async def delete(self, collection: str, ids: Sequence[str] | None = None, where: Condition | None = None) -> None:
        import qdrant_edge as edge

        condition = _condition(within(ids, where))

        def change(shard: edge.EdgeShard) -> None:
            shard.update(edge.UpdateOperation.delete_points_by_filter(condition))
            shard.flush()

        await self._with(collection, change)

    async def search(
        self, collection: str, query: list[float] | Words, k: int, where: Condition | None, *, words: bool
    ) -> list[tuple[str, float]]:
        import qdrant_edge as edge

        if isinstance(query, Words):
            nearest = edge.Query.Nearest(_sparse(query), WORDS)
        else:
            nearest = edge.Query.Nearest(query, DENSE if words else None)
        request = edge.QueryRequest(limit=k, query=nearest, filter=_filter(where), with_payload=["chunk_id"])
        found = await self._with(collection, lambda shard: shard.query(request))
        return [(name, hit.score) for hit in found if (name := chunk_id_of(hit.payload))]

    async def retrieve(self, collection: str, ids: Sequence[str]) -> list[QdrantPoint]:
        records = await self._with(collection, lambda shard: shard.retrieve(list(ids), True, True))
        return [from_record(record) for record in records]

    async def page(self, collection: str, where: Condition | None, size: int, offset: Any) -> IdPage:
        import qdrant_edge as edge

        request = edge.ScrollRequest(
            limit=size, offset=offset, filter=_filter(where), with_payload=["chunk_id"], with_vector=False
        )
        records, offset = await self._with(collection, lambda shard: shard.scroll(request))
        return IdPage([name for record in records if (name := chunk_id_of(record.payload))], offset)

    async def count(self, collection: str, where: Condition | None) -> int:
        import qdrant_edge as edge

        request = edge.CountRequest(exact=True, filter=_filter(where))
        return await self._with(collection, lambda shard: shard.count(request))

    async def drop(self, collection: str) -> None:
        await self._resident.run(lambda shards: shards.drop(collection))

    async def health(self) -> Health:
        collections = await self._resident.run(lambda shards: len(shards.names()))
        version = importlib.metadata.version("qdrant-edge-py")
        return Health(version, f"edge, {collections} collections in {self._resident.folder}")

    async def close(self) -> None:
        await self._resident.close()

    async def _with(self, collection: str, work: Callable[[Any], R]) -> R:
        return await self._resident.run(lambda shards: shards.work(collection, work))


class _Shards:
    """The shards of a folder, each opened when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, Any] = {}
        for left in (path for end in (HALF_MADE, HALF_GONE) for path in folder.glob(f"*{end}")):
            shutil.rmtree(left)

    def names(self) -> list[str]:
        return sorted(found.parent.name for found in self._folder.glob(f"*/{CONFIG}"))

    def form(self, collection: str) -> Form:
        path = self._folder / collection / CONFIG
        if not path.exists():
            raise CollectionMissing
        config = json.loads(path.read_bytes())
        words = WORDS in (config.get("sparse_vectors") or {})
        return Form(int(config["vectors"][DENSE if words else ""]["size"]), words)

    def create(self, collection: str, form: Form, isolation: Isolation) -> None:
        if (self._folder / collection).exists():
            return
        import qdrant_edge as edge

        dense = edge.EdgeVectorParams(size=form.dimension, distance=edge.Distance.Cosine)
        sparse = {WORDS: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)}
        config = edge.EdgeConfig(
            vectors={DENSE: dense} if form.words else dense,
            sparse_vectors=sparse if form.words else None,
            # No graph is ever built; the optimizer only takes out what was deleted.
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=0),
            max_search_threads=1,
        )
        made = self._folder / (collection + HALF_MADE)
        shard = edge.EdgeShard.create(str(made), config)
        for field in ("tenant_id", "space") if isolation != "collection" else ():
            index = edge.KeywordIndexParams(is_tenant=field == "tenant_id" and isolation == "namespace")
            shard.update(edge.UpdateOperation.create_field_index(field, index))
        shard.flush()
        shard.close()
        # A kill leaves the whole shard or none under its name.
        made.rename(self._folder / collection)

    def drop(self, collection: str) -> None:
        shard = self._open.pop(collection, None)
        if shard is not None:
            shard.close()
        path = self._folder / collection
        if path.exists():
            shutil.rmtree(path.rename(path.with_name(collection + HALF_GONE)))

    def work(self, collection: str, work: Callable[[Any], R]) -> R:
        with _translate_errors(self._folder / collection):
            return work(self._shard(collection))

    def close(self) -> None:
        for shard in self._open.values():
            shard.close()
        self._open.clear()

    def _shard(self, collection: str) -> Any:
        if collection not in self._open:
            path = self._folder / collection
            if not path.exists():
                raise CollectionMissing
            import qdrant_edge as edge

            shard = edge.EdgeShard.load(str(path))
            shard.optimize()
            self._open[collection] = shard
        return self._open[collection]


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # The engine raises nothing but plain exceptions; any other kind is not the engine's.
        if type(error) is not Exception:
            raise
        if "No space left" in str(error):
            raise StoreFull(f"no space is left for the Qdrant folder {path}", hint="free some") from error
        raise StoreError(
            f"Qdrant cannot work with {path}: {error}", hint=REBUILD, remedy=Remedy(Action.REPAIR_STORES)
        ) from error


def _sparse(words: Words) -> Any:
    import qdrant_edge as edge

    return edge.SparseVector(list(words.numbers), list(words.weights))


def _filter(where: Condition | None) -> Any:
    return None if where is None else _condition(where)


def _condition(raw: Condition) -> Any:
    """Return a condition of the REST interface as the engine's own object."""
    import qdrant_edge as edge

    if "has_id" in raw:
        return edge.HasIdCondition(set(raw["has_id"]))
    if "range" in raw:
        return edge.FieldCondition(key=raw["key"], range=edge.RangeFloat(**raw["range"]))
    if "match" in raw:
        return edge.FieldCondition(key=raw["key"], match=_match(**raw["match"]))
    clauses: dict[str, Any] = {clause: [_condition(term) for term in terms] for clause, terms in raw.items()}
    return edge.Filter(**clauses)


def _match(value: Json = None, any: list[Json] | None = None) -> Any:  # noqa: A002  Qdrant's own words
    import qdrant_edge as edge

    if any is not None:
        return edge.MatchAny(any)
    # The engine takes Python's True for 1, which is another value to it; numpy's it knows.
    known: Json = np.bool_(value) if isinstance(value, bool) else value
    return edge.MatchValue(known)
