"""The tables, defined once for every database; alembic's migrations are checked against this."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from ragstone.stores.sql.control_schema import SERIAL
from ragstone.stores.sql.control_schema import control as control
from ragstone.stores.sql.shop_schema import define_shop

tenant = MetaData()
knowledge_bases = Table(
    "knowledge_bases",
    tenant,
    Column("id", SERIAL, primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("name", String(63), nullable=False),
    Column("live_space", SERIAL, nullable=True),
    Column("created_at", String(25), nullable=False),
    Column("languages", Text, nullable=False, server_default=text("''")),
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
    Column("retired_at", String(25), nullable=True),
    Column("keep_until", String(25), nullable=True),
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
    Column("parent_id", String(32), nullable=True),
    Column("signature", LargeBinary, nullable=True),
    UniqueConstraint("tenant_id", "kb_id", "source", "external_id"),
    Index("idx_documents_parent", "parent_id"),
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
resemblances = Table(
    "resemblances",
    tenant,
    Column("kb_id", SERIAL, primary_key=True, autoincrement=False),
    Column("band", BigInteger, primary_key=True, autoincrement=False),
    Column("document_id", String(32), ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Index("idx_resemblances_document", "document_id"),
    sqlite_with_rowid=False,
)
checkpoints = Table(
    "checkpoints",
    tenant,
    Column("document_id", String(32), primary_key=True),
    Column("made_from", String(64), primary_key=True),
    Column("part", String(63), primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("data", LargeBinary, nullable=False),
)
jobs = Table(
    "jobs",
    tenant,
    Column("seq", SERIAL, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kb_id", SERIAL, ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("priority", Integer, nullable=False),
    Column("document_id", String(32), nullable=False),
    Column("source", String(255), nullable=False),
    Column("external_id", Text, nullable=False),
    Column("uri", Text, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("facts", JSON, nullable=False),
    Column("progress", JSON, nullable=False),
    Column("notify", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("token", Integer, nullable=False),
    Column("worker", String(127), nullable=False),
    Column("boot", String(36), nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("not_before", Float, nullable=False),
    Column("error_code", String(63), nullable=False),
    Column("error", Text, nullable=False),
    Column("created_at", String(25), nullable=False),
    Column("started_at", String(25), nullable=True),
    Column("finished_at", String(25), nullable=True),
    Column("stored", BigInteger, nullable=False, server_default="0"),
    Index("idx_jobs_queue", "state", "priority", "seq"),
    Index("idx_jobs_document", "document_id", "seq"),
    Index("idx_jobs_stored", "tenant_id", "state", "stored"),
    sqlite_autoincrement=True,
)
sources = Table(
    "sources",
    tenant,
    Column("id", String(32), primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kb_id", SERIAL, ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
    Column("name", String(63), nullable=False),
    Column("kind", String(63), nullable=False),
    Column("config", JSON, nullable=False),
    Column("schedule", String(127), nullable=False),
    Column("cursor", JSON, nullable=True),
    Column("paused", Integer, nullable=False),
    Column("next_run_at", String(25), nullable=True),
    Column("last_run_at", String(25), nullable=True),
    Column("last_error", Text, nullable=False),
    Column("created_at", String(25), nullable=False),
    Column("unread", JSON, nullable=False, server_default="{}"),
    UniqueConstraint("tenant_id", "kb_id", "name"),
)
notices = Table(
    "notices",
    tenant,
    Column("id", SERIAL, primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("job_id", String(32), nullable=False),
    Column("document_id", String(32), nullable=False),
    Column("uri", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("created_at", String(25), nullable=False),
    Column("seen", Integer, nullable=False),
    Column("sent", Integer, nullable=False),
    Index("idx_notices_sent", "sent"),
    sqlite_autoincrement=True,
)
counters = Table(
    "counters",
    tenant,
    Column("tenant_id", String(32), primary_key=True),
    Column("name", String(31), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
watermarks = Table(
    "watermarks",
    tenant,
    Column("tenant_id", String(32), primary_key=True),
    Column("index_name", String(127), primary_key=True),
    Column("space_id", BigInteger, primary_key=True, autoincrement=False),
    Column("dimension", Integer, nullable=False),
    Column("sequence", BigInteger, nullable=False),
)
turns = Table(
    "turns",
    tenant,
    Column("id", SERIAL, primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kb_id", SERIAL, ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
    Column("conversation", String(200), nullable=False),
    Column("moment", String(25), nullable=False),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Index("idx_turns_conversation", "kb_id", "conversation", "moment"),
    Index("idx_turns_moment", "moment"),
    sqlite_autoincrement=True,
)
turn_documents = Table(
    "turn_documents",
    tenant,
    Column("tenant_id", String(32), primary_key=True),
    Column("turn_id", SERIAL, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("document_id", String(32), ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Index("idx_turn_documents_turn", "turn_id"),
    Index("idx_turn_documents_document", "document_id"),
    sqlite_with_rowid=False,
)
votes = Table(
    "votes",
    tenant,
    Column("tenant_id", String(32), primary_key=True),
    Column(
        "kb_id", SERIAL, ForeignKey("knowledge_bases.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    Column("query_hash", String(64), primary_key=True),
    Column("chunk_id", String(32), primary_key=True),
    Column("voter", String(200), primary_key=True),
    Column("document_id", String(32), ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("moment", String(25), nullable=False),
    Column("query", Text, nullable=False),
    Column("vote", String(8), nullable=False),
    Index("idx_votes_kb", "kb_id", "moment"),
    Index("idx_votes_document", "document_id"),
    sqlite_with_rowid=False,
)
"""A query may be longer than a key of PostgreSQL, so its hash is the key."""
golden_queries = Table(
    "golden_queries",
    tenant,
    Column("tenant_id", String(32), primary_key=True),
    Column(
        "kb_id", SERIAL, ForeignKey("knowledge_bases.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    Column("query_hash", String(64), primary_key=True),
    Column("document_id", String(32), ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("query", Text, nullable=False),
    Column("origin", String(16), nullable=False),
    Index("idx_golden_queries_kb", "kb_id"),
    Index("idx_golden_queries_document", "document_id"),
    sqlite_with_rowid=False,
)
web_results = Table(
    "web_results",
    tenant,
    Column("tenant_id", String(32), primary_key=True),
    Column("query_hash", String(64), primary_key=True),
    Column("query_text", String(500), nullable=False),
    Column("results", Text, nullable=False),
    Column("result_count", Integer, nullable=False),
    Column("search_provider", String(50), nullable=False),
    Column("search_timestamp", String(25), nullable=False),
    Column("expires_at", String(25), nullable=False),
    Index("idx_web_results_expires_at", "expires_at"),
)
article_runs = Table(
    "article_runs",
    tenant,
    Column("id", String(32), primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("kb_id", SERIAL, ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
    Column("graph", String(16), nullable=False),
    Column("topic", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("error", Text, nullable=False),
    Column("token", Integer, nullable=False),
    Column("checkpoint", LargeBinary, nullable=True),
    Column("result", LargeBinary, nullable=True),
    Column("created_at", String(25), nullable=False),
    Column("updated_at", String(25), nullable=False),
    Index("idx_article_runs_kb", "kb_id", "created_at"),
)
imported_files = Table(
    "imported_files",
    tenant,
    Column("tenant_id", String(32), primary_key=True),
    Column("id", String(32), primary_key=True),
    Column("moment", String(25), nullable=False),
)
"""Files of earlier versions whose rows were taken over, so that a file is taken over once."""
define_shop(tenant)

postgres = MetaData()
"""Tables that only PostgreSQL has: its indexes, which on SQLite are FTS5's."""
postings = Table(
    "postings",
    postgres,
    Column("kb_id", BigInteger, nullable=False),
    Column("chunk_seq", BigInteger, nullable=False),
    Column("count", Integer, nullable=False),
    Column("length", Integer, nullable=False),
    Column("tenant_id", String(32), nullable=False),
    Column("term", String(64), nullable=False),
    Index("idx_postings_term", "kb_id", "term", "chunk_seq", "count", "length"),
)
"""Without a key: it would be as large as the rows. The one writer of a tenant adds a live chunk once."""
lexical_statistics = Table(
    "lexical_statistics",
    postgres,
    Column("tenant_id", String(32), primary_key=True),
    Column("kb_id", BigInteger, primary_key=True, autoincrement=False),
    Column("chunks", BigInteger, nullable=False),
    Column("length", BigInteger, nullable=False),
)
log = MetaData()
"""The retrieval log, in a file of its own beside a tenant's SQLite ledger; PostgreSQL has it among the tables."""


def _retrieval_log(metadata: MetaData, *, with_ledger: bool) -> None:
    kb, document = (
        [ForeignKey(f"{table}.id", ondelete="CASCADE")] if with_ledger else []
        for table in ("knowledge_bases", "documents")
    )
    Table(
        "retrieval_log",
        metadata,
        Column("id", SERIAL, primary_key=True),
        Column("tenant_id", String(32), nullable=False),
        Column("moment", String(25), nullable=False),
        Column("kb_id", SERIAL, *kb, nullable=True),
        Column("kb_name", Text, nullable=False),
        Column("conversation", String(200), nullable=False),
        Column("query", Text, nullable=False),
        Column("query_type", String(50), nullable=False),
        Column("mode", String(16), nullable=False),
        Column("sources_queried", Text, nullable=False, server_default="[]"),
        Column("sources_returned", Text, nullable=False, server_default="[]"),
        Column("document_results_count", Integer, nullable=False, server_default="0"),
        Column("database_results_count", Integer, nullable=False, server_default="0"),
        Column("internet_results_count", Integer, nullable=False, server_default="0"),
        Column("total_results", Integer, nullable=False, server_default="0"),
        Column("retrieval_time_ms", Float, nullable=False, server_default="0"),
        Column("embedding_time_ms", Float, nullable=False, server_default="0"),
        Column("top_score", Float, nullable=False, server_default="0"),
        Column("similarity", Float, nullable=True),
        Column("coverage", Float, nullable=False, server_default="0"),
        Column("missing", Text, nullable=False),
        Column("success", Integer, nullable=False, server_default="1"),
        Column("error_message", Text, nullable=False),
        Index("idx_retrieval_log_tenant", "tenant_id", "moment"),
        Index("idx_retrieval_log_kb", "kb_id", "moment"),
        Index("idx_retrieval_log_conversation", "conversation"),
        Index("idx_retrieval_log_success", "success"),
        sqlite_autoincrement=True,
    )
    Table(
        "retrieval_log_hits",
        metadata,
        Column("tenant_id", String(32), primary_key=True),
        Column(
            "search_id",
            SERIAL,
            ForeignKey("retrieval_log.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        Column("rank", Integer, primary_key=True, autoincrement=False),
        Column("chunk_id", String(32), nullable=False),
        Column("document_id", String(32), *document, nullable=False),
        Column("score", Float, nullable=False),
        Index("idx_retrieval_log_hits_search", "search_id"),
        Index("idx_retrieval_log_hits_document", "document_id"),
        sqlite_with_rowid=False,
    )


_retrieval_log(log, with_ledger=False)
_retrieval_log(postgres, with_ledger=True)
Table(
    "imported_files",
    log,
    Column("tenant_id", String(32), primary_key=True),
    Column("id", String(32), primary_key=True),
    Column("moment", String(25), nullable=False),
)
