"""Approximate indexes of vectors in PostgreSQL: the options of `store.vectors.options`, and their upkeep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from ragstone.core.errors import SettingsError
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import part, refresh

Kind = Literal["hnsw", "ivfflat", "none"]
LARGEST_INDEXED = 4_000
LARGEST = 16_000
"""The dimensions that pgvector takes in a `halfvec`, with an index and without one."""
MOST = {"exact_below": 10_000_000, "lists": 32_768, "probes": 32_768, "ef_search": 1_000}


@dataclass(frozen=True, slots=True)
class PgVectorOptions:
    """The options, checked."""

    index: Kind = "hnsw"
    exact_below: int = 20_000
    """A Space, or what a filter leaves of one, is sorted exactly as long as it has fewer vectors."""
    ef_search: int = 100
    lists: int = 100
    probes: int = 20

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> PgVectorOptions:
        """Return the given options, the others with their defaults."""
        known = [field.name for field in fields(cls)]
        for name, value in given.items():
            if name not in known:
                raise _refusal(name, "is not an option of pgvector", f"its options are: {', '.join(known)}")
            if name == "index":
                if value not in get_args(Kind):
                    raise _refusal(name, f"is {value!r:.40}", f"choose one of: {', '.join(get_args(Kind))}")
                continue
            least = 0 if name == "exact_below" else 1
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST[name]:
                raise _refusal(name, f"is {value!r:.40}", f"give a whole number from {least} to {MOST[name]:,}")
        return cls(**given)

    @property
    def largest_dimension(self) -> int:
        """Return the longest vectors that a Space may have."""
        return LARGEST if self.index == "none" else LARGEST_INDEXED

    @property
    def definition(self) -> str:
        """Return the parameters that the index is made with."""
        return f"lists = {self.lists}" if self.index == "ivfflat" else "m = 16, ef_construction = 100"


def _refusal(name: str, what: str, hint: str) -> SettingsError:
    return SettingsError(f"store.vectors.options.{name} {what}", hint=hint)


GROWN = 4
"""The cells of an IVFFlat index fit the vectors it was built on; so many times as many they do not fit any more."""
PREFIX = "idx_chunks_embedding_"
BUILT = """
SELECT c.relname, m.amname, i.indisvalid, coalesce(array_to_string(c.reloptions, ', '), ''),
    coalesce(substring(obj_description(c.oid, 'pg_class') from 'built on ([0-9]+) vectors')::bigint, 0)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE i.indrelid = to_regclass(?) AND m.amname IN ('hnsw', 'ivfflat') AND starts_with(c.relname, ?) ORDER BY c.oid
"""
SERVING = """
SELECT m.amname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE i.indrelid = to_regclass(?) AND i.indisvalid AND starts_with(c.relname, ?) ORDER BY c.oid DESC LIMIT 1
"""
TRY_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(?, 0))"
UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(?, 0))"


@dataclass(frozen=True, slots=True)
class Built:
    """An index that there is."""

    name: str
    kind: str
    is_whole: bool
    """False when its making was cut short."""
    made_with: str
    vectors: int
    """The number of vectors it was built on; 0 when that was not noted down."""

    @property
    def space_id(self) -> int:
        return int(self.name.removeprefix(PREFIX).split("_")[0])

    def suits(self, options: PgVectorOptions, vectors: int) -> bool:
        """Return whether it is what the options ask for and was built on enough vectors."""
        asked = (self.kind, self.made_with) == (options.index, options.definition.replace(" = ", "="))
        outgrown = self.kind == "ivfflat" and vectors >= GROWN * max(self.vectors, 1)
        return self.is_whole and asked and not outgrown


@dataclass(frozen=True, slots=True)
class Order:
    """The work on the indexes of a Space: an index to make, if any, and those to drop."""

    space_id: int
    dimension: int
    vectors: int
    makes: bool
    drops: tuple[str, ...]


def serving(connection: Connection, tenant_id: str, space_id: int) -> str | None:
    """Return the kind of index that a Space has; None when it has no valid one."""
    row = connection.execute(SERVING, (part("vectors", tenant_id), f"{PREFIX}{space_id}_")).fetchone()
    return str(row[0]) if row else None


def orders(connection: Connection, tenant_id: str, options: PgVectorOptions, afresh: int | None = None) -> list[Order]:
    """Return the work to do for a tenant. The index of Space `afresh` is rebuilt in any case."""
    vectors = part("vectors", tenant_id)
    built = [Built(*row) for row in connection.execute(BUILT, (vectors, PREFIX))]
    counts = dict(connection.execute(f"SELECT space_id, count(*) FROM {vectors} GROUP BY space_id").fetchall())
    spaces = connection.execute(
        "SELECT id, dimension, state FROM spaces WHERE tenant_id = ? ORDER BY id", (tenant_id,)
    ).fetchall()
    wanted = []
    for space_id, dimension, state in spaces:
        own = [index for index in built if index.space_id == space_id]
        if state != "retired":  # it may come back, and then wants its index as it is
            count = counts.get(space_id, 0)
            wanted.append(_order(space_id, dimension, count, own, options, afresh=space_id == afresh))
    known = {space_id for space_id, _, _ in spaces}
    left = tuple(index.name for index in built if index.space_id not in known)
    return [order for order in (*wanted, Order(0, 0, 0, False, left)) if order.makes or order.drops]


def tend(
    connection: Connection, tenant_id: str, options: PgVectorOptions, afresh: int | None = None
) -> list[Order] | None:
    """Do all the work there is, outside any transaction; None when another process does it already."""
    name = f"ragstone indexes of {tenant_id}"
    if not connection.execute(TRY_LOCK, (name,)).fetchone()[0]:
        return None
    try:
        todo = orders(connection, tenant_id, options, afresh)
        for order in todo:
            if order.makes:
                _make(connection, tenant_id, order, options)
                refresh(connection, tenant_id)
            for index in order.drops:
                connection.execute(f'DROP INDEX CONCURRENTLY IF EXISTS ragstone."{index}"')
    finally:
        connection.execute(UNLOCK, (name,))
    return todo


def _order(
    space_id: int, dimension: int, count: int, own: list[Built], options: PgVectorOptions, *, afresh: bool
) -> Order:
    # Once made, an index stays until the Space has shrunk to half of what one is made for.
    least = options.exact_below // 2 if own else options.exact_below
    wants = options.index != "none" and dimension <= LARGEST_INDEXED and count >= max(least, 1)
    good = [index.name for index in own if index.suits(options, count)][-1:] if wants and not afresh else []
    drops = tuple(index.name for index in own if index.name not in good)
    return Order(space_id, dimension, count, wants and not good, drops)


def _make(connection: Connection, tenant_id: str, order: Order, options: PgVectorOptions) -> None:
    name = f"{PREFIX}{order.space_id}_{_next_number(order.drops)}"
    connection.execute(
        f'CREATE INDEX CONCURRENTLY "{name}" ON {part("vectors", tenant_id)} USING {options.index} '
        f"((vector::halfvec({order.dimension})) halfvec_cosine_ops) WITH ({options.definition}) "
        f"WHERE space_id = {order.space_id}"
    )
    connection.execute(f"COMMENT ON INDEX ragstone.\"{name}\" IS 'built on {order.vectors} vectors'")


def _next_number(names: Iterable[str]) -> int:
    return max((int(name.rsplit("_", 1)[1]) for name in names), default=0) + 1
