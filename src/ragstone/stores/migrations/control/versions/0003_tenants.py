"""Tenants get a state, quotas, a retention and settings of their own; what they use is written down."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for column in (
        sa.Column("state", sa.String(16), nullable=False, server_default="active"),
        sa.Column("quotas", sa.Text, nullable=False, server_default="{}"),
        sa.Column("retention_days", sa.Integer, nullable=True),
        sa.Column("settings", sa.Text, nullable=False, server_default="{}"),
        sa.Column("seed", sa.String(63), nullable=True),
    ):
        op.add_column("tenants", column)
    op.create_table(
        "usage",
        _of_tenant(primary_key=True),
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("period", sa.String(16), primary_key=True),
        sa.Column("used", sa.Float, nullable=False),
    )
    op.create_table(
        "reservations",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(63), primary_key=True),
        _of_tenant(nullable=False),
        sa.Column("amount", sa.Float, nullable=False),
        sa.Column("expires_at", sa.String(25), nullable=False),
    )
    op.create_index("idx_reservations_tenant", "reservations", ["tenant_id", "name"])


def _of_tenant(*, primary_key: bool = False, nullable: bool = False) -> sa.Column[str]:
    tenant = sa.ForeignKey("tenants.id", ondelete="CASCADE")
    return sa.Column("tenant_id", sa.String(32), tenant, primary_key=primary_key, nullable=nullable)
