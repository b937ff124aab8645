"""Replies to requests that carry an idempotency key, to be given again when the request is repeated."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "stored_replies",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("tenant_id", sa.String(32), sa.ForeignKey("tenants.id", ondelete="CASCADE"), nullable=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("lease_until", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=True),
    )
    op.create_index("idx_stored_replies_tenant", "stored_replies", ["tenant_id"])
    op.create_index("idx_stored_replies_expires_at", "stored_replies", ["expires_at"])
