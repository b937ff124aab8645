"""The first tenant schema: documents, versions, chunks, vectors, terms and the change feed."""

import sqlalchemy as sa
from alembic import op

from ragstone.stores.migrations.postgres_objects import PARTITIONS, SWEEP, VIEWS

revision = "0001"
down_revision = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    on_postgres = op.get_bind().dialect.name == "postgresql"
    for statement in PARTITIONS if on_postgres else ():
        op.execute(statement)
    op.create_table(
        "knowledge_bases",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("live_space", SERIAL, nullable=True),
        sa.Column("created_at", sa.String(25), nullable=False),
        sa.UniqueConstraint("tenant_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "spaces",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kb_id", SERIAL, sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("dimension", sa.Integer, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", sa.String(25), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "documents",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kb_id", SERIAL, sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
        sa.Column("source", sa.String(255), nullable=False),
        sa.Column("external_id", sa.Text, nullable=False),
        sa.Column("uri", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("last_version", sa.Integer, nullable=False),
        sa.Column("chunk_count", sa.Integer, nullable=False),
        sa.Column("token_count", sa.Integer, nullable=False),
        sa.Column("media_type", sa.String(127), nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("recipe", sa.String(64), nullable=False),
        sa.Column("embedded", sa.Integer, nullable=False),
        sa.Column("modified_at", sa.String(25), nullable=True),
        sa.Column("created_at", sa.String(25), nullable=False),
        sa.Column("updated_at", sa.String(25), nullable=False),
        sa.UniqueConstraint("tenant_id", "kb_id", "source", "external_id"),
    )
    op.create_table(
        "versions",
        sa.Column("document_id", sa.String(32), sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.String(25), nullable=False),
    )
    op.create_table(
        "chunks",
        sa.Column("seq", SERIAL, primary_key=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kb_id", SERIAL, nullable=False),
        sa.Column("document_id", sa.String(32), sa.ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("chunk_index", sa.Integer, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("context", sa.Text, nullable=False),
        sa.Column("content_hash", sa.LargeBinary(16), nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("stop", sa.Integer, nullable=False),
        sa.Column("page", sa.Integer, nullable=True),
        sa.Column("section", sa.JSON, nullable=False),
        sa.Column("parent", sa.Integer, nullable=True),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("token_count", sa.Integer, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_chunks_document", "chunks", ["document_id", "version", "chunk_index"], unique=True)
    op.create_index("idx_chunks_content_hash", "chunks", ["content_hash"])
    op.create_table(
        "vectors",
        sa.Column("space_id", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("chunk_seq", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "terms",
        sa.Column("chunk_seq", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("terms", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "changes",
        sa.Column("seq", SERIAL, primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kb_id", SERIAL, nullable=False),
        sa.Column("operation", sa.String(9), nullable=False),
        sa.Column("chunk_seq", SERIAL, nullable=False),
        sa.Column("chunk_id", sa.String(32), nullable=False),
        sqlite_autoincrement=True,
    )
    for statement in (*SWEEP, *VIEWS) if on_postgres else ():
        op.execute(statement)
