"""Tables that two migrations make: 0008 of the ledger, and 0001 of the log's own file.

These belong to those two. What changes later is changed by a later one.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def create_retrieval_log(*, with_ledger: bool) -> None:
    """Create the log; next to the ledger's tables its rows go with the kb and the document."""
    kb, document = (
        [sa.ForeignKey(f"{table}.id", ondelete="CASCADE")] if with_ledger else []
        for table in ("knowledge_bases", "documents")
    )
    op.create_table(
        "retrieval_log",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("moment", sa.String(25), nullable=False),
        sa.Column("kb_id", SERIAL, *kb, nullable=True),
        sa.Column("kb_name", sa.Text, nullable=False),
        sa.Column("conversation", sa.String(200), nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("query_type", sa.String(50), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("sources_queried", sa.Text, nullable=False, server_default="[]"),
        sa.Column("sources_returned", sa.Text, nullable=False, server_default="[]"),
        sa.Column("document_results_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("database_results_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("internet_results_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("total_results", sa.Integer, nullable=False, server_default="0"),
        sa.Column("retrieval_time_ms", sa.Float, nullable=False, server_default="0"),
        sa.Column("embedding_time_ms", sa.Float, nullable=False, server_default="0"),
        sa.Column("top_score", sa.Float, nullable=False, server_default="0"),
        sa.Column("similarity", sa.Float, nullable=True),
        sa.Column("coverage", sa.Float, nullable=False, server_default="0"),
        sa.Column("missing", sa.Text, nullable=False),
        sa.Column("success", sa.Integer, nullable=False, server_default="1"),
        sa.Column("error_message", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_retrieval_log_tenant", "retrieval_log", ["tenant_id", "moment"])
    op.create_index("idx_retrieval_log_kb", "retrieval_log", ["kb_id", "moment"])
    op.create_index("idx_retrieval_log_conversation", "retrieval_log", ["conversation"])
    op.create_index("idx_retrieval_log_success", "retrieval_log", ["success"])
    op.create_table(
        "retrieval_log_hits",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column(
            "search_id",
            SERIAL,
            sa.ForeignKey("retrieval_log.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("rank", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("chunk_id", sa.String(32), nullable=False),
        sa.Column("document_id", sa.String(32), *document, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("idx_retrieval_log_hits_search", "retrieval_log_hits", ["search_id"])
    op.create_index("idx_retrieval_log_hits_document", "retrieval_log_hits", ["document_id"])


def create_imported_files() -> None:
    """Create the list of files of earlier versions whose rows were taken over."""
    op.create_table(
        "imported_files",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("moment", sa.String(25), nullable=False),
    )
