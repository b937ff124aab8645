"""What PostgreSQL shows of documents, chunks and embeddings under names that others know, and by which indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import INDEXED, server

from ragstone import Engine, open_engine
from ragstone.core.types import Item
from ragstone.settings.load import load_settings
from ragstone.stores.migrations.postgres import ensure
from ragstone.stores.migrations.postgres_objects import VIEWS
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
APPROXIMATE = """
SELECT i.indexname, i.indexdef, m.amname FROM pg_indexes i JOIN pg_class c ON c.relname = i.indexname
JOIN pg_am m ON m.oid = c.relam WHERE i.schemaname = 'ragstone' AND m.amname IN ('hnsw', 'ivfflat')
"""
FEW = {"exact_below": 10}
"""So few that a test need not store 20,000 vectors to have an index."""


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the dimension that the settings ask for."""
    monkeypatch.setattr(
        "ragstone.engine.components.build_embedder",
        lambda settings: FakeEmbedder(name=settings.model, dimension=settings.dimensions or 64),
    )
    monkeypatch.setattr("ragstone.engine.components.build_reranker", lambda _: None)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[psycopg.Connection]:
    """Looks at the test's database as the service does."""
    with psycopg.connect(server(INDEXED).database(tmp_path), autocommit=True) as connection:
        connection.execute("SET search_path = ragstone_views, ragstone, public")
        yield connection


def opened(profile: str, tmp_path: Path, **more: Any) -> Any:
    """An engine of a profile on the test's database."""
    overrides = {
        "profile": profile,
        "data_dir": str(tmp_path / "data"),
        "store.ledger.dsn": server(INDEXED).database(tmp_path),
        "llm.base_url": None,
        **more,
    }
    return open_engine(load_settings(overrides=overrides, environment={}))


def act_for_the_tenant(app: psycopg.Connection) -> None:
    app.execute("SELECT set_config('ragstone.tenant', id, false) FROM tenants WHERE name = 'default'")


async def fill(engine: Engine, documents: int = 12) -> None:
    page = "# Guide {n}\n\nWelcome to place {n}.\n\n## Ferry\n\nThe ferry number {n} leaves at nine from pier {n}."
    items = [Item("wiki", f"{n}.md", f"wiki/{n}.md", page.format(n=n).encode()) for n in range(documents)]
    report = await workspace_of(engine).documents.ingest_items(items)
    assert (report.added, report.failed) == (documents, ())
    await engine._components.ledger.clean_up("default")


@pytest.mark.req("R-DOM-04")
async def test_kosmos_keeps_768_dimensions_under_an_ivfflat_index_of_100_lists(
    app: psycopg.Connection, tmp_path: Path, models: None
) -> None:
    async with opened(
        "kosmos", tmp_path, **{"store.vectors.options": FEW | {"index": "ivfflat", "lists": 100}}
    ) as engine:
        await fill(engine)
    ((name, definition, kind),) = app.execute(APPROXIMATE).fetchall()
    assert name.startswith("idx_chunks_embedding")
    assert kind == "ivfflat"
    assert "(vector)::halfvec(768)) halfvec_cosine_ops" in definition
    assert "WITH (lists='100')" in definition
    act_for_the_tenant(app)
    rows = app.execute(
        "SELECT pg_typeof(embedding)::text, vector_dims(embedding), embedding::vector(768) = embedding, "
        "content, chunk_index, jsonb_typeof(metadata), created_at IS NOT NULL, document_id, tenant_id FROM chunks"
    ).fetchall()
    assert {row[:3] for row in rows} == {("vector", 768, True)}
    assert len(rows) >= 12
    assert {row[5:7] for row in rows} == {("object", True)}
    assert None not in {row[7] for row in rows} | {row[8] for row in rows}


async def test_the_profile_itself_asks_for_that_index() -> None:
    for profile, index, lists in (("kosmos", "ivfflat", 100), ("takaro", "hnsw", None)):
        options = load_settings(overrides={"profile": profile}, environment={}).store.vectors.options
        assert (options["index"], options.get("lists")) == (index, lists)


@pytest.mark.req("R-DOM-10")
async def test_takaro_keeps_1536_dimensions_under_an_hnsw_index(
    app: psycopg.Connection, tmp_path: Path, models: None
) -> None:
    async with opened("takaro", tmp_path, **{"store.vectors.options": FEW | {"index": "hnsw"}}) as engine:
        await fill(engine)
    ((name, definition, kind),) = app.execute(APPROXIMATE).fetchall()
    assert (kind, name.startswith("idx_chunks_embedding")) == ("hnsw", True)
    assert "halfvec(1536)) halfvec_cosine_ops" in definition
    act_for_the_tenant(app)
    row = app.execute(
        "SELECT content, content_with_context, pg_typeof(embedding)::text, vector_dims(embedding), "
        "content_tsvector = to_tsvector('english', content), document_title, section_path "
        "FROM knowledge_embeddings WHERE content LIKE '%ferry number 3 %'"
    ).fetchone()
    assert row is not None
    content, contextual, kind, dimension, same, title, path = row
    assert (kind, dimension, same, title, path) == ("vector", 1536, True, "Guide 3", ["Ferry"])
    assert contextual == f"# Guide 3\n## Ferry\n\n{content}"
    plan = "EXPLAIN SELECT seq FROM ragstone.chunks WHERE tenant_id = %s AND content_tsv @@ to_tsquery('ferry')"
    tenant_id = app.execute("SELECT current_setting('ragstone.tenant')").fetchone()
    app.execute("SET enable_seqscan = off")
    assert "content_tsv @@" in "\n".join(line for (line,) in app.execute(plan, tenant_id))


@pytest.mark.req("R-DOM-14", "R-DOM-18")
async def test_the_records_of_uploads_and_chunks_are_views_too(
    app: psycopg.Connection, tmp_path: Path, models: None
) -> None:
    text = b"# Guide\n\n## Ferry\n\nThe ferry leaves at nine."
    facts = {"description": "How to get about", "category": "travel", "tags": ["ferry"]}
    async with opened("takaro", tmp_path) as engine:
        done = await workspace_of(engine).documents.upload(text, "guide.md", title="Island", metadata=facts)
        await asyncio.wait_for(engine.worker().run(until_idle=True), 240)
        waiting = await workspace_of(engine).documents.upload(b"Later.", "later.txt", metadata={"tags": ["soon"]})
        failed = await workspace_of(engine).documents.upload(b"%PDF-1.7 cut", "cut.pdf")
        assert failed.job is not None
        await workspace_of(engine).jobs.cancel(failed.job.id)
        statuses = [await workspace_of(engine).documents.status(one.document_id) for one in (done, waiting, failed)]
        records = await workspace_of(engine).documents.chunk_records(done.document_id)
    assert app.execute("SELECT count(*) FROM document_records").fetchone() == (0,)
    act_for_the_tenant(app)
    for status in statuses:
        row = app.execute(
            "SELECT filename, file_type, file_size, file_path, status, processing_error, title, description, "
            "category, tags, chunk_count, total_tokens, uploaded_at, processed_at FROM document_records "
            "WHERE replace(id::text, '-', '') = %s",
            (status.document_id,),
        ).fetchone()
        assert row == (
            *(status.filename, status.file_type, status.file_size, status.file_path, status.status),
            *(status.processing_error, status.title, status.description, status.category),
            *(list(status.tags), status.chunk_count, status.total_tokens),
            *(status.uploaded_at, status.processed_at),
        )
    assert [status.status for status in statuses] == ["completed", "pending", "failed"]
    rows = app.execute(
        "SELECT content, chunk_index, token_count, embedding_model, embedding_id, page_number, section_title, "
        "created_at FROM document_chunks WHERE replace(document_id::text, '-', '') = %s ORDER BY chunk_index",
        (done.document_id,),
    ).fetchall()
    assert rows == [
        (
            *(one.content, one.chunk_index, one.token_count, one.embedding_model, one.embedding_id),
            *(one.page_number, one.section_title, one.created_at),
        )
        for one in records
    ]
    assert {row[3] for row in rows} == {"text-embedding-3-small"}


@pytest.mark.req("R-DOM-20")
def test_chunks_have_an_index_by_document_and_number_by_tenant_and_by_id(app: psycopg.Connection) -> None:
    definitions = [
        definition.split(" USING ")[1]
        for (definition,) in app.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'ragstone' AND tablename = 'chunks'"
        )
    ]
    assert "btree (document_id, version, chunk_index, tenant_id)" in definitions
    assert "btree (tenant_id, kb_id)" in definitions
    assert "btree (tenant_id, id)" in definitions  # the id of a chunk is that of its embedding


ADDED_SINCE = (
    "retrieval_log_hits",
    "retrieval_log",
    "turn_documents",
    "turns",
    "votes",
    "golden_queries",
    "web_results",
    "imported_files",
    "products",
    "services",
    "appointments",
    "agent_settings",
    "article_runs",
)


def as_before(dsn: str) -> None:
    """Make a database what it was before migration 0006."""
    with psycopg.connect(dsn) as connection:
        connection.execute("SET search_path = ragstone, public")
        for view in ("document_records", "document_chunks", "chunks", "knowledge_embeddings", "documents"):
            connection.execute(f"DROP VIEW ragstone_views.{view}")
        connection.execute("ALTER TABLE jobs DROP COLUMN stored")
        connection.execute("ALTER TABLE sources DROP COLUMN unread")
        connection.execute("ALTER TABLE knowledge_bases DROP COLUMN languages")
        connection.execute("DROP INDEX idx_terms_marked")
        for table in ADDED_SINCE:
            connection.execute(f"DROP TABLE {table} CASCADE")
        for statement in VIEWS:
            connection.execute(statement)
        connection.execute("UPDATE alembic_version_tenant SET version_num = '0005'")


async def test_originals_of_an_earlier_version_are_counted_after_the_upgrade(
    app: psycopg.Connection, tmp_path: Path, models: None
) -> None:
    dsn = server(INDEXED).database(tmp_path)
    async with opened("takaro", tmp_path) as engine:
        for text in (b"first words", b"second words"):
            await engine.workspace("one").documents.upload(text, "a.txt", external_id="a")
            await asyncio.wait_for(engine.worker().run(until_idle=True), 240)
        await engine.workspace("two").documents.upload(b"%PDF-1.7 cut", "cut.pdf")
        await asyncio.wait_for(engine.worker().run(until_idle=True), 240)
    as_before(dsn)
    app.execute("GRANT SELECT ON ragstone_views.chunks TO PUBLIC")
    ensure(dsn)
    async with opened("takaro", tmp_path) as engine:
        assert (await engine.tenants.usage("one")).stock.originals == len(b"second words")
        assert (await engine.tenants.usage("two")).stock.originals == len(b"%PDF-1.7 cut")
    assert app.execute("SELECT has_table_privilege('public', 'ragstone_views.chunks', 'SELECT')").fetchone() == (True,)


def test_a_view_of_somebody_s_own_does_not_stop_the_upgrade(app: psycopg.Connection, tmp_path: Path) -> None:
    dsn = server(INDEXED).database(tmp_path)
    as_before(dsn)
    app.execute("CREATE VIEW ragstone.mine AS SELECT embedding FROM ragstone_views.chunks")
    ensure(dsn)
    kinds = {
        name: app.execute(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attname = 'embedding'",
            (name,),
        ).fetchone()
        for name in ("ragstone.mine", "ragstone_views.chunks", "ragstone_views.knowledge_embeddings")
    }
    assert kinds == {
        "ragstone.mine": ("halfvec",),
        "ragstone_views.chunks": ("halfvec",),
        "ragstone_views.knowledge_embeddings": ("vector",),
    }
