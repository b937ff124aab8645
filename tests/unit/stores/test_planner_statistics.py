"""PostgreSQL's planner learns of what was loaded at once, and not at every step."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance import postgres_server

from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.lexical.postgres import PostgresLexicalIndex
from ragstone.stores.lexical.postgres_fts import PostgresFtsIndex
from ragstone.stores.sql import partitions as planner_statistics
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import note_growth, part
from ragstone.testing.builders import make_version, put

postgres_databases = postgres_server.postgres_databases


@pytest.mark.parametrize(
    ("first", "last", "looks"),
    [
        *((1, 1, False), (1, 63, False), (1, 64, True), (64, 64, True), (65, 127, False), (65, 128, True)),
        *((513, 1023, False), (513, 1024, True), (1024, 1024, True), (1025, 2047, False)),
        *((1025, 2048, True), (2047, 2048, True), (2048, 2048, True), (2049, 4095, False)),
        *((1000, 100_000, True),),
    ],
)
def test_it_looks_each_time_that_there_are_twice_as_many(
    first: int, last: int, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(planner_statistics, "refresh", lambda _, tenant_id: seen.append(tenant_id))
    note_growth(None, "t", [(number, "") for number in range(first, last + 1)])  # type: ignore[arg-type]
    assert seen == (["t"] if looks else [])


def test_no_rows_are_nothing_to_look_at() -> None:
    note_growth(None, "t", [])  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [PostgresLexicalIndex, PostgresFtsIndex])
async def test_a_load_is_known_before_anybody_searches(
    index: type[PostgresLexicalIndex | PostgresFtsIndex], tmp_path: Path
) -> None:
    ledger = PostgresLedger(postgres_server.server(18).database(tmp_path), tmp_path, index.writers())
    await put(ledger, make_version("a", ["x"] * 100))

    def estimate(connection: Connection, tenant_id: str) -> float:
        row = connection.execute(
            "SELECT reltuples FROM pg_class WHERE oid = to_regclass(?)", (part("chunks", tenant_id),)
        ).fetchone()
        return float(row[0])

    assert await ledger.read("default", estimate) == 100
    await ledger.close()


@pytest.mark.parametrize("tenant_id", ["", 'a"; DROP TABLE x; --', "../x", "A", "x" * 33, "a\n"])
def test_what_is_no_tenants_id_never_gets_into_sql(tenant_id: str) -> None:
    with pytest.raises(ValueError, match="is no tenant's id"):
        part("chunks", tenant_id)
