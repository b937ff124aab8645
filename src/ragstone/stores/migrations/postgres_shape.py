"""The tables of the migrations as PostgreSQL has them, where all tenants share one database.

SQLite keeps a tenant per file and takes every table as it is written. On PostgreSQL the same definition gives: keys
that lead with the tenant, rows that only their tenant sees, a partition per tenant for what grows with the text,
and text that compares by its bytes, whatever the locale of the database.
"""

from __future__ import annotations

from typing import Any, cast

from alembic.ddl.postgresql import PostgresqlImpl
from sqlalchemy import (
    JSON,
    Column,
    Computed,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import BYTEA, JSONB, TSVECTOR
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine, UserDefinedType

OWNER = "tenant_id"
PARTITIONED = frozenset({"versions", "chunks", "terms", "vectors", "changes", "postings"})
SWEPT = frozenset({"terms", "vectors", "postings"})
"""Rows that go with their chunk by a trigger: a foreign key into a partitioned table costs ten times the insert."""
LEADING = {"vectors": "chunk_seq"}
"""Keys that begin with another column than they do on SQLite: this one is deleted by chunk."""


class HalfVectorColumn(UserDefinedType[Any]):
    """pgvector's float16, of any dimension."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "halfvec"


TYPES: dict[tuple[str, str], TypeEngine[Any]] = {
    ("versions", "text"): Text(),
    ("terms", "terms"): Text(),
    ("vectors", "vector"): HalfVectorColumn(),
}
"""Columns that SQLite packs into bytes and PostgreSQL keeps in types of their own."""


class ShapedTables(PostgresqlImpl):
    """Makes what migrations ask for, in PostgreSQL's shape."""

    def create_table(self, table: Table, **options: Any) -> None:
        shaped = on_postgres(table, owned=self._has_owner)
        super().create_table(shaped, **options)
        if self._has_owner:
            for statement in guard_rows(table.name):
                self._exec(text(statement))
        if table.name in PARTITIONED:
            self._exec(text("SELECT add_partitions(id) FROM tenants"))

    def add_column(self, table_name: str, column: Column[Any], **options: Any) -> None:
        column.type = _type(table_name, column)
        super().add_column(table_name, column, **options)

    def create_index(self, index: Index, **options: Any) -> None:
        assert index.table is not None
        names = _index_columns(index.table.name, index, self._has_owner)
        table = Table(index.table.name, MetaData(), *(Column(name) for name in names))
        super().create_index(Index(index.name, *table.columns, unique=bool(index.unique)), **options)

    @property
    def _has_owner(self) -> bool:
        return bool(self.context_opts.get("tenant_tables"))


def on_postgres(table: Table, *, owned: bool) -> Table:
    """Return the same table as PostgreSQL has it, beside stubs of the tables that it refers to."""
    metadata = MetaData()
    items: list[SchemaItem] = [_column(table, column) for column in table.columns]
    items += [_primary_key(table, owned), *_uniques(table, owned), *_foreign_keys(table, owned)]
    if table.name == "chunks":
        items.append(Column("content_tsv", TSVECTOR, Computed("to_tsvector('english', content)", persisted=True)))
    for name in {target for _, target, _, _ in _references(table, owned)}:
        Table(name, metadata, Column(OWNER, Text), Column("id", Text))
    partition = {"postgresql_partition_by": f"LIST ({OWNER})"} if table.name in PARTITIONED else {}
    shaped = Table(table.name, metadata, *items, **cast("dict[str, Any]", partition))
    for index in table.indexes:
        columns = [shaped.c[name] for name in _index_columns(table.name, index, owned)]
        Index(index.name, *columns, unique=bool(index.unique))
    if table.name == "chunks":
        Index("idx_chunks_fts", shaped.c.content_tsv, postgresql_using="gin")
        Index("idx_chunks_tenant", shaped.c.tenant_id, shaped.c.kb_id)
    if table.name == "terms":
        words = func.string_to_array(shaped.c.terms, literal_column("' '"))
        Index("idx_terms_marked", words, postgresql_using="gin", postgresql_where=text("terms LIKE '%~%'"))
    return shaped


def guard_rows(table: str) -> list[str]:
    """Return SQL that shows the rows of a table to their tenant only, also to the table's owner."""
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {table} USING ({OWNER} = current_setting('ragstone.tenant', true))",
    ]


def _column(table: Table, column: Column[Any]) -> Column[Any]:
    default = column.server_default
    return Column(
        column.name,
        _type(table.name, column),
        *([Identity()] if _counts(table, column) else []),
        nullable=column.nullable,
        server_default=getattr(default, "arg", None),
    )


def _type(table: str, column: Column[Any]) -> TypeEngine[Any]:
    kept = TYPES.get((table, column.name))
    if kept is not None:
        return kept
    match column.type:
        case JSON():
            return JSONB()
        case String():
            return Text(collation="C")
        case LargeBinary():
            return BYTEA()
    return column.type


def _counts(table: Table, column: Column[Any]) -> bool:
    """Return whether the database numbers the rows; those of partitioned tables are numbered by the ledger."""
    alone = [one.name for one in table.primary_key] == [column.name]
    return alone and isinstance(column.type, Integer) and table.name not in PARTITIONED


def _primary_key(table: Table, owned: bool) -> PrimaryKeyConstraint:
    names = [column.name for column in table.primary_key]
    if owned and names:
        lead = [OWNER, LEADING.get(table.name, OWNER)]
        names = [*dict.fromkeys(lead), *(name for name in names if name not in lead)]
    return PrimaryKeyConstraint(*names)


def _uniques(table: Table, owned: bool) -> list[UniqueConstraint]:
    constraints = [one for one in table.constraints if isinstance(one, UniqueConstraint)]
    keys = sorted([column.name for column in one.columns] for one in constraints)
    return [UniqueConstraint(*dict.fromkeys([*([OWNER] if owned else []), *key])) for key in keys]


def _foreign_keys(table: Table, owned: bool) -> list[ForeignKeyConstraint]:
    return [
        ForeignKeyConstraint(columns, [f"{target}.{name}" for name in referred], ondelete=cascade)
        for columns, target, referred, cascade in _references(table, owned)
    ]


def _references(table: Table, owned: bool) -> list[tuple[list[str], str, list[str], str | None]]:
    """Return foreign keys: columns, the table and columns they refer to, and the action on deletion."""
    found = []
    for key in sorted(table.foreign_keys, key=lambda one: one.target_fullname):
        target, name = key.target_fullname.split(".")
        lead = [OWNER] if owned else []
        found.append(([*lead, key.parent.name], target, [*lead, name], key.ondelete))
    if owned and not found and table.name not in SWEPT:
        found.append(([OWNER], "tenants", ["id"], "CASCADE"))
    return found


def _index_columns(table: str, index: Index, owned: bool) -> list[str]:
    """Return the columns of an index: the tenant first, except in a partition, which is all one tenant's."""
    names = [column.name for column in index.columns]
    if not owned or OWNER in names:
        return names
    if table not in PARTITIONED:
        return [OWNER, *names]
    return [*names, OWNER] if index.unique else names
