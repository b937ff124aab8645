"""Conversations, votes, golden queries and web results; on PostgreSQL also the retrieval log."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from ragstone.stores.migrations.retrieval_log import create_imported_files, create_retrieval_log

revision = "0008"
down_revision = "0007"

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "turns",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kb_id", SERIAL, sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
        sa.Column("conversation", sa.String(200), nullable=False),
        sa.Column("moment", sa.String(25), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_turns_conversation", "turns", ["kb_id", "conversation", "moment"])
    op.create_index("idx_turns_moment", "turns", ["moment"])
    op.create_table(
        "turn_documents",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        _key("turn_id", SERIAL, "turns"),
        _key("document_id", sa.String(32), "documents"),
        sqlite_with_rowid=False,
    )
    op.create_index("idx_turn_documents_turn", "turn_documents", ["turn_id"])
    op.create_index("idx_turn_documents_document", "turn_documents", ["document_id"])
    op.create_table(
        "votes",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        _key("kb_id", SERIAL, "knowledge_bases"),
        sa.Column("query_hash", sa.String(64), primary_key=True),
        sa.Column("chunk_id", sa.String(32), primary_key=True),
        sa.Column("voter", sa.String(200), primary_key=True),
        sa.Column("document_id", sa.String(32), sa.ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
        sa.Column("moment", sa.String(25), nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("vote", sa.String(8), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("idx_votes_kb", "votes", ["kb_id", "moment"])
    op.create_index("idx_votes_document", "votes", ["document_id"])
    op.create_table(
        "golden_queries",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        _key("kb_id", SERIAL, "knowledge_bases"),
        sa.Column("query_hash", sa.String(64), primary_key=True),
        _key("document_id", sa.String(32), "documents"),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("idx_golden_queries_kb", "golden_queries", ["kb_id"])
    op.create_index("idx_golden_queries_document", "golden_queries", ["document_id"])
    op.create_table(
        "web_results",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("query_hash", sa.String(64), primary_key=True),
        sa.Column("query_text", sa.String(500), nullable=False),
        sa.Column("results", sa.Text, nullable=False),
        sa.Column("result_count", sa.Integer, nullable=False),
        sa.Column("search_provider", sa.String(50), nullable=False),
        sa.Column("search_timestamp", sa.String(25), nullable=False),
        sa.Column("expires_at", sa.String(25), nullable=False),
    )
    op.create_index("idx_web_results_expires_at", "web_results", ["expires_at"])
    create_imported_files()
    if op.get_bind().dialect.name == "postgresql":
        create_retrieval_log(with_ledger=True)


def _key(name: str, kind: sa.types.TypeEngine[Any], table: str) -> sa.Column[Any]:
    """A column of the key that goes with the row it names."""
    target = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(name, kind, target, primary_key=True, autoincrement=False)
