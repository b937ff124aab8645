"""Keys for callers over the network."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("tenant_id", sa.String(32), sa.ForeignKey("tenants.id", ondelete="CASCADE"), nullable=True),
        sa.Column("scopes", sa.String(31), nullable=False),
        sa.Column("kbs", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(25), nullable=False),
        sa.Column("expires_at", sa.String(25), nullable=True),
        sa.Column("revoked_at", sa.String(25), nullable=True),
        sa.Column("secret_hash", sa.String(64), nullable=False),
    )
    op.create_index("idx_api_keys_tenant", "api_keys", ["tenant_id"])
