"""Runs of the article pipeline with their last checkpoint."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "article_runs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("kb_id", SERIAL, sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE"), nullable=False),
        sa.Column("graph", sa.String(16), nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("checkpoint", sa.LargeBinary, nullable=True),
        sa.Column("result", sa.LargeBinary, nullable=True),
        sa.Column("created_at", sa.String(25), nullable=False),
        sa.Column("updated_at", sa.String(25), nullable=False),
    )
    op.create_index("idx_article_runs_kb", "article_runs", ["kb_id", "created_at"])
