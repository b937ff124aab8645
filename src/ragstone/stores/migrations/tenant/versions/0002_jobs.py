"""Jobs, sources, notices and checkpoints; documents learn of their parents and of what resembles them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("documents", sa.Column("parent_id", sa.String(32), nullable=True))
    op.add_column("documents", sa.Column("signature", sa.LargeBinary, nullable=True))
    op.create_index("idx_documents_parent", "documents", ["parent_id"])
    op.create_table(
        "resemblances",
        sa.Column("kb_id", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("band", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("document_id", sa.String(32), sa.ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("idx_resemblances_document", "resemblances", ["document_id"])
    op.create_table(
        "checkpoints",
        sa.Column("document_id", sa.String(32), primary_key=True),
        sa.Column("made_from", sa.String(64), primary_key=True),
        sa.Column("part", sa.String(63), primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("seq", SERIAL, primary_key=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kb_id", SERIAL, sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("document_id", sa.String(32), nullable=False),
        sa.Column("source", sa.String(255), nullable=False),
        sa.Column("external_id", sa.Text, nullable=False),
        sa.Column("uri", sa.Text, nullable=False),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sa.Column("progress", sa.JSON, nullable=False),
        sa.Column("notify", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("worker", sa.String(127), nullable=False),
        sa.Column("boot", sa.String(36), nullable=False),
        sa.Column("lease_until", sa.Float, nullable=False),
        sa.Column("not_before", sa.Float, nullable=False),
        sa.Column("error_code", sa.String(63), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(25), nullable=False),
        sa.Column("started_at", sa.String(25), nullable=True),
        sa.Column("finished_at", sa.String(25), nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_jobs_queue", "jobs", ["state", "priority", "seq"])
    op.create_index("idx_jobs_document", "jobs", ["document_id", "seq"])
    op.create_table(
        "sources",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kb_id", SERIAL, sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("kind", sa.String(63), nullable=False),
        sa.Column("config", sa.JSON, nullable=False),
        sa.Column("schedule", sa.String(127), nullable=False),
        sa.Column("cursor", sa.JSON, nullable=True),
        sa.Column("paused", sa.Integer, nullable=False),
        sa.Column("next_run_at", sa.String(25), nullable=True),
        sa.Column("last_run_at", sa.String(25), nullable=True),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(25), nullable=False),
        sa.UniqueConstraint("tenant_id", "kb_id", "name"),
    )
    op.create_table(
        "notices",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("document_id", sa.String(32), nullable=False),
        sa.Column("uri", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(25), nullable=False),
        sa.Column("seen", sa.Integer, nullable=False),
        sa.Column("sent", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_notices_sent", "notices", ["sent"])
