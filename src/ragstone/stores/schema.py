"""The tables, defined once for every database; alembic's migrations are checked against this."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SERIAL = BigInteger().with_variant(Integer(), "sqlite")

control = MetaData()
tenants = Table(
    "tenants",
    control,
    Column("name", String(63), primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("created_at", String(25), nullable=False),
)

tenant = MetaData()
knowledge_bases = Table(
    "knowledge_bases",
    tenant,
    Column("id", SERIAL, primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("name", String(63), nullable=False),
    Column("live_space", SERIAL, nullable=True),
    Column("created_at", String(25), nullable=False),
    UniqueConstraint("tenant_id", "name"),
    sqlite_autoincrement=True,
)
spaces = Table(
    "spaces",
    tenant,
    Column("id", SERIAL, primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kb_id", SERIAL, ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
    Column("model", String(255), nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("created_at", String(25), nullable=False),
    sqlite_autoincrement=True,
)
documents = Table(
    "documents",
    tenant,
    Column("id", String(32), primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kb_id", SERIAL, ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
    Column("source", String(255), nullable=False),
    Column("external_id", Text, nullable=False),
    Column("uri", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("last_version", Integer, nullable=False),
    Column("chunk_count", Integer, nullable=False),
    Column("token_count", Integer, nullable=False),
    Column("media_type", String(127), nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("recipe", String(64), nullable=False),
    Column("embedded", Integer, nullable=False),
    Column("modified_at", String(25), nullable=True),
    Column("created_at", String(25), nullable=False),
    Column("updated_at", String(25), nullable=False),
    UniqueConstraint("tenant_id", "kb_id", "source", "external_id"),
)
versions = Table(
    "versions",
    tenant,
    Column("document_id", String(32), ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("facts", JSON, nullable=False),
    Column("text", LargeBinary, nullable=False),
    Column("created_at", String(25), nullable=False),
)
chunks = Table(
    "chunks",
    tenant,
    Column("seq", SERIAL, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kb_id", SERIAL, nullable=False),
    Column("document_id", String(32), ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("chunk_index", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("content_hash", LargeBinary(16), nullable=False),
    Column("start", Integer, nullable=False),
    Column("stop", Integer, nullable=False),
    Column("page", Integer, nullable=True),
    Column("section", JSON, nullable=False),
    Column("parent", Integer, nullable=True),
    Column("level", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("token_count", Integer, nullable=False),
    Column("metadata", JSON, nullable=False),
    Index("idx_chunks_document", "document_id", "version", "chunk_index", unique=True),
    Index("idx_chunks_content_hash", "content_hash"),
    sqlite_autoincrement=True,
)
vectors = Table(
    "vectors",
    tenant,
    Column("space_id", SERIAL, primary_key=True, autoincrement=False),
    Column("chunk_seq", SERIAL, primary_key=True, autoincrement=False),
    Column("tenant_id", String(32), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
terms = Table(
    "terms",
    tenant,
    Column("chunk_seq", SERIAL, primary_key=True, autoincrement=False),
    Column("tenant_id", String(32), nullable=False),
    Column("terms", LargeBinary, nullable=False),
)
changes = Table(
    "changes",
    tenant,
    Column("seq", SERIAL, primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kb_id", SERIAL, nullable=False),
    Column("operation", String(9), nullable=False),
    Column("chunk_seq", SERIAL, nullable=False),
    Column("chunk_id", String(32), nullable=False),
    sqlite_autoincrement=True,
)
