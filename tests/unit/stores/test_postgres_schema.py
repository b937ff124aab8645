"""A PostgreSQL database: the tables that SQLite has, guarded rows, and the names that others rely on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.conformance import postgres_server
from tests.conformance.postgres_server import EMPTY, VERSIONS, server

from ragstone import Item, Settings, open_engine
from ragstone.core.errors import StoreError
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.migrations import HEADS, Schema, create, list_tables
from ragstone.stores.migrations.postgres import SERVICE, ensure
from ragstone.stores.migrations.postgres_shape import PARTITIONED
from ragstone.testing.builders import make_version, put, unit_vectors
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
GUARDED = """
SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, count(p.polname), c.relispartition
FROM pg_class c LEFT JOIN pg_policy p ON p.polrelid = c.oid
WHERE c.relnamespace = 'ragstone'::regnamespace AND c.relkind IN ('r', 'p') GROUP BY c.oid
"""
KNOWN_TO_ALL = {
    "alert_messages",
    "alerts",
    "audit",
    "audit_gaps",
    "audit_head",
    "api_keys",
    "stored_replies",
    "resting_names",
    "tenants",
    "usage",
    "reservations",
    "alembic_version_control",
    "alembic_version_tenant",
}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def admin(version: int, tmp_path: Path) -> Iterator[psycopg.Connection]:
    """Looks at the test's database from above."""
    with psycopg.connect(server(version).admin(server(version).name_of(tmp_path)), autocommit=True) as connection:
        connection.execute("SET search_path = ragstone, public")
        yield connection


async def fill(dsn: str, folder: Path, *tenants: str) -> dict[str, str]:
    """Put a document into each tenant; their ids."""
    ledger = PostgresLedger(dsn, folder)
    for name in tenants:
        version = make_version(texts=(f"words of {name}", "more"), vectors=unit_vectors(2), tenant=name)
        await put(ledger, version, tenant=name)
    ids = {name: await ledger.read(name, lambda _, tenant_id: tenant_id) for name in tenants}
    await ledger.close()
    return ids


@pytest.mark.parametrize("schema", ["control", "tenant", "log"])
def test_a_database_has_the_columns_and_indexes_of_a_file(admin: psycopg.Connection, schema: Schema) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as file:
        create(file, schema)
        for table in list_tables(schema):
            wanted = {
                (name, bool(required), default is not None)
                for _, name, _, required, default, _ in file.execute("SELECT * FROM pragma_table_info(?)", (table,))
            }
            found = admin.execute(
                "SELECT column_name, is_nullable = 'NO', column_default IS NOT NULL FROM information_schema.columns "
                "WHERE table_schema = 'ragstone' AND table_name = %s AND is_generated = 'NEVER'",
                (table,),
            )
            assert set(found.fetchall()) == wanted, table
        named = file.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    assert named
    assert set(named) <= set(admin.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'ragstone'").fetchall())


def test_the_newest_migrations_are_applied(admin: psycopg.Connection) -> None:
    applied = admin.execute(
        "SELECT a.version_num, b.version_num FROM alembic_version_control a, alembic_version_tenant b"
    ).fetchone()
    assert applied == (HEADS["control"], HEADS["tenant"])


async def test_every_table_of_tenants_is_guarded_and_so_is_every_partition(
    admin: psycopg.Connection, version: int, tmp_path: Path
) -> None:
    ids = await fill(server(version).database(tmp_path), tmp_path, "one", "two")
    tables = {name: (forced, policies) for name, forced, policies, _ in admin.execute(GUARDED)}
    assert {name for name, state in tables.items() if state != (True, 1)} == KNOWN_TO_ALL
    parts = {name for name, _, _, is_part in admin.execute(GUARDED) if is_part}
    assert parts == {f"{table}_{tenant_id}" for table in PARTITIONED & set(tables) for tenant_id in ids.values()}


@pytest.mark.req("R-TEN-06")
async def test_nobody_sees_or_writes_rows_of_another_tenant_even_by_hand(version: int, tmp_path: Path) -> None:
    dsn = server(version).database(tmp_path)
    ids = await fill(dsn, tmp_path, "one", "two")
    with psycopg.connect(dsn, autocommit=True) as app:
        app.execute("SET search_path = ragstone, ragstone_views, public")
        tables = [name for name, _, policies, _ in app.execute(GUARDED) if policies]
        assert [name for name in tables if app.execute(f"SELECT count(*) FROM {name}").fetchone() != (0,)] == []
        app.execute("SELECT set_config('ragstone.tenant', %s, false)", (ids["one"],))
        for name in tables:
            seen = {row[0] for row in app.execute(f"SELECT DISTINCT tenant_id FROM {name}")}
            assert seen <= {ids["one"]}, name
        assert app.execute("SELECT content FROM chunks ORDER BY seq").fetchall() == [("words of one",), ("more",)]
        assert app.execute(f"SELECT count(*) FROM chunks_{ids['two']}").fetchone() == (0,)
        for statement in (
            "INSERT INTO counters (tenant_id, name, value) VALUES (%s, 'x', 1)",
            "INSERT INTO terms (tenant_id, chunk_seq, terms) VALUES (%s, 9, 'x')",
            f"INSERT INTO terms_{ids['two']} (tenant_id, chunk_seq, terms) VALUES (%s, 9, 'x')",
            "UPDATE documents SET tenant_id = %s",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                app.execute(statement, (ids["two"],))
        assert app.execute("DELETE FROM documents WHERE title <> ''").rowcount == 1
        app.execute("SELECT set_config('ragstone.tenant', %s, false)", (ids["two"],))
        assert app.execute("SELECT count(*) FROM chunks").fetchone() == (2,)


async def test_a_text_search_in_a_partition_uses_its_index(version: int, tmp_path: Path) -> None:
    dsn = server(version).database(tmp_path)
    ids = await fill(dsn, tmp_path, "one")
    with psycopg.connect(dsn) as app:
        app.execute("SELECT set_config('ragstone.tenant', %s, true)", (ids["one"],))
        app.execute("SET LOCAL enable_seqscan = off")
        plan = app.execute(
            f"EXPLAIN SELECT seq FROM ragstone.chunks_{ids['one']} WHERE content_tsv @@ to_tsquery('words')"
        ).fetchall()
        assert "Index Cond: (content_tsv @@" in "\n".join(line for (line,) in plan)


@pytest.mark.req("R-DOM-05")
@pytest.mark.parametrize("table", ["documents", "tenants"])
async def test_what_belongs_to_a_row_goes_with_it(
    admin: psycopg.Connection, version: int, tmp_path: Path, table: str
) -> None:
    ids = await fill(server(version).database(tmp_path), tmp_path, "one", "two")
    column = "id" if table == "tenants" else "tenant_id"
    admin.execute(f"DELETE FROM {table} WHERE {column} = %s", (ids["one"],))
    belongs = ["documents", "versions", "chunks", "terms", "vectors"]
    if table == "tenants":
        belongs += [name for name, _, policies, is_part in admin.execute(GUARDED) if policies and not is_part]
    for name in belongs:
        left = {row[0] for row in admin.execute(f"SELECT DISTINCT tenant_id FROM {name}")}
        assert left <= {ids["two"]}, name
        assert left or name not in ("chunks", "terms", "vectors")


@pytest.mark.req("R-DOM-06", "R-DOM-08", "R-DOM-11")
def test_the_chunks_have_their_indexes_by_name(admin: psycopg.Connection) -> None:
    found = dict(admin.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'chunks'").fetchall())
    assert "USING gin (content_tsv)" in found["idx_chunks_fts"]
    assert "(tenant_id, kb_id)" in found["idx_chunks_tenant"]
    assert "(document_id, version, chunk_index, tenant_id)" in found["idx_chunks_document"]
    (generated,) = admin.execute(
        "SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid "
        "AND a.attnum = d.adnum WHERE d.adrelid = 'chunks'::regclass AND a.attname = 'content_tsv'"
    ).fetchone() or ("",)
    assert generated == "to_tsvector('english'::regconfig, content)"


def columns(admin: psycopg.Connection, view: str) -> dict[str, str]:
    rows = admin.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0",
        (f"ragstone_views.{view}",),
    )
    return dict(rows.fetchall())


@pytest.mark.req("R-DOM-01")
async def test_every_row_of_a_tenant_names_it(
    admin: psycopg.Connection, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    store = {"ledger": {"kind": "postgres", "dsn": server(version).database(tmp_path)}}
    async with open_engine(Settings(data_dir=tmp_path / "data", store=store)) as engine:
        assert engine.settings.tenant == "default"
        await workspace_of(engine).documents.ingest_items([Item("test", "a", "a", "The ferry sails at six.")])
        await engine.tenants.set_settings("default", {"retrieval.k": 3})
        await workspace_of(engine).search("ferry")
        await engine._components.search_log.flush()
        tenant = await engine.tenants.get("default")
    found = admin.execute("SELECT id, settings FROM tenants WHERE name = 'default'").fetchall()
    assert tenant is not None
    assert found == [(tenant.id, '{"retrieval.k": 3}')]
    shown = admin.execute("SELECT DISTINCT tenant_id FROM ragstone_views.documents").fetchall()
    assert shown == [(UUID(tenant.id),)]
    required = admin.execute(
        "SELECT table_name FROM information_schema.columns "
        "WHERE table_schema = 'ragstone' AND column_name = 'tenant_id' AND is_nullable = 'NO'"
    )
    named = {name for (name,) in required.fetchall()}
    assert {*list_tables("tenant"), *list_tables("log"), "postings", "lexical_statistics"} <= named
    for table in ("documents", "chunks", "vectors", "retrieval_log"):
        assert table in named
        assert admin.execute(f"SELECT DISTINCT tenant_id FROM {table}").fetchall() == [(tenant.id,)], table


@pytest.mark.req("R-DOM-03")
async def test_a_document_lacks_none_of_its_fields(admin: psycopg.Connection, version: int, tmp_path: Path) -> None:
    required = admin.execute(
        "SELECT table_name || '.' || column_name FROM information_schema.columns "
        "WHERE table_schema = 'ragstone' AND table_name IN ('documents', 'versions') AND is_nullable = 'NO'"
    )
    fields = {name for (name,) in required.fetchall()}
    assert {f"documents.{name}" for name in ("id", "tenant_id", "metadata", "created_at", "updated_at")} <= fields
    assert "versions.text" in fields
    (key,) = admin.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE conrelid = 'ragstone.documents'::regclass AND contype = 'p'"
    ).fetchone() or ("",)
    assert "id" in key
    before = datetime.now(UTC).replace(microsecond=0)
    await fill(server(version).database(tmp_path), tmp_path, "one")
    rows = admin.execute(
        "SELECT id, tenant_id, content, metadata, created_at, updated_at FROM ragstone_views.documents"
    ).fetchall()
    ((made, tenant, content, metadata, created, updated),) = rows
    assert (type(made), type(tenant), content, metadata) == (UUID, UUID, "words of one\n\nmore", {})
    assert before <= created <= updated <= datetime.now(UTC)


@pytest.mark.req("R-DOM-03")
async def test_views_have_the_columns_that_others_know(admin: psycopg.Connection, version: int, tmp_path: Path) -> None:
    uuids = dict.fromkeys(("id", "tenant_id"), "uuid")
    moment = "timestamp with time zone"
    assert columns(admin, "documents") == uuids | dict.fromkeys(("source_url", "title", "content"), "text") | {
        "metadata": "jsonb",
        "created_at": moment,
        "updated_at": moment,
    }
    assert columns(admin, "chunks") == uuids | {
        "document_id": "uuid",
        "content": "text",
        "embedding": "vector",
        "chunk_index": "integer",
        "metadata": "jsonb",
        "content_tsv": "tsvector",
        "created_at": moment,
    }
    texts = dict.fromkeys(("kb", "content", "content_with_context"), "text")
    assert columns(admin, "knowledge_embeddings") == uuids | texts | {
        "embedding": "vector",
        "content_tsvector": "tsvector",
        "document_title": "character varying(255)",
        "section_path": "text[]",
    }


@pytest.mark.req("R-DOM-03", "R-DOM-11")
async def test_views_show_live_content_of_the_tenant_alone(version: int, tmp_path: Path) -> None:
    dsn = server(version).database(tmp_path)
    ledger = PostgresLedger(dsn, tmp_path)
    document = make_version(texts=("old words",), vectors=unit_vectors(1), tenant="one")
    await put(ledger, document, tenant="one")
    newer = make_version(
        texts=("running words",), vectors=unit_vectors(1), tenant="one", context="Part > ", metadata={"n": 1}
    )
    await put(ledger, newer, tenant="one")
    await put(ledger, make_version(tenant="two"), tenant="two")
    tenant_id = await ledger.read("one", lambda _, tenant_id: tenant_id)
    await ledger.close()
    with psycopg.connect(dsn) as app:
        app.execute("SELECT set_config('ragstone.tenant', %s, true)", (tenant_id,))
        app.execute("SET LOCAL search_path = ragstone_views, public")
        assert app.execute(
            "SELECT replace(id::text, '-', ''), source_url, title, content, metadata FROM documents"
        ).fetchall() == [(newer.document_id, "test:a", "Title of a", "running words", {"n": 1})]
        assert app.execute(
            "SELECT content, chunk_index, content_tsv::text, vector_dims(embedding) FROM chunks"
        ).fetchall() == [("running words", 0, "'run':1 'word':2", 32)]
        assert app.execute(
            "SELECT kb, content, content_with_context, content_tsvector::text, document_title, section_path "
            "FROM knowledge_embeddings"
        ).fetchall() == [("default", "running words", "Part > running words", "'run':1 'word':2", "Title of a", [])]


async def test_ten_processes_may_start_on_an_empty_database_at_once(version: int, tmp_path: Path) -> None:
    dsn = server(version).dsn(server(version).create(EMPTY))
    ledgers = [PostgresLedger(dsn, tmp_path / str(n), pool_size=2) for n in range(10)]
    await asyncio.gather(*(put(ledger, make_version(f"d{n}")) for n, ledger in enumerate(ledgers)))
    kb = await ledgers[0].of("default").kb("default")
    assert kb is not None
    assert (await ledgers[0].of("default").stats(kb)).documents == 10
    for ledger in ledgers:
        await ledger.close()


@pytest.mark.req("R-DOM-09")
async def test_a_superuser_makes_everything_and_then_acts_as_a_lesser_role(version: int, tmp_path: Path) -> None:
    name = server(version).create("template0")
    ids = await fill(server(version).admin(name), tmp_path, "one", "two")
    with psycopg.connect(server(version).admin(name)) as admin:
        owners = admin.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'ragstone'").fetchall()
        assert owners == [(SERVICE,)]
        assert admin.execute(
            "SELECT rolsuper OR rolbypassrls OR rolcanlogin FROM pg_roles WHERE rolname = %s", (SERVICE,)
        ).fetchone() == (False,)
    ledger = PostgresLedger(server(version).admin(name), tmp_path)

    def tenants(connection: Any, _: str) -> list[Any]:
        acting = connection.execute("SELECT current_user").fetchone()
        return [acting, *connection.execute("SELECT DISTINCT tenant_id FROM chunks").fetchall()]

    assert await ledger.read("one", tenants) == [(SERVICE,), (ids["one"],)]
    await ledger.close()


def test_a_role_that_may_not_add_the_extension_is_told_who_may(version: int) -> None:
    dsn = server(version).dsn(server(version).create("template0"))
    with pytest.raises(StoreError, match="may not add the extension 'vector'") as raised:
        ensure(dsn)
    assert "CREATE EXTENSION vector" in raised.value.hint


async def test_a_role_above_row_security_that_cannot_make_another_is_refused(version: int, tmp_path: Path) -> None:
    name = server(version).create(EMPTY)
    with psycopg.connect(server(version).admin(name), autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS above")
        admin.execute("CREATE ROLE above LOGIN BYPASSRLS")
        admin.execute(f"GRANT CREATE ON DATABASE {name} TO above")
    ledger = PostgresLedger(make_conninfo(server(version).admin(name), user="above"), tmp_path)
    with pytest.raises(StoreError, match="above row-level security") as raised:
        await ledger.work_signals()
    assert "NOBYPASSRLS" in raised.value.hint
    await ledger.close()


async def test_an_owner_that_rose_above_row_security_is_refused(version: int, tmp_path: Path) -> None:
    name = server(version).create(EMPTY)
    with psycopg.connect(server(version).admin(name), autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS riser")
        admin.execute("CREATE ROLE riser LOGIN")
        admin.execute(f"GRANT CREATE ON DATABASE {name} TO riser")
        ensure(make_conninfo(server(version).admin(name), user="riser"))
        admin.execute("ALTER ROLE riser BYPASSRLS")
        ledger = PostgresLedger(make_conninfo(server(version).admin(name), user="riser"), tmp_path)
        with pytest.raises(StoreError, match="role 'riser' owns the tables"):
            await ledger.work_signals()
        await ledger.close()
        admin.execute("DROP OWNED BY riser; DROP ROLE riser")
