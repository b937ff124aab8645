"""The state of alerts, and what the webhook is still to be told of them."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "alerts",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("rule", sa.String(63), primary_key=True),
        sa.Column("tenant", sa.String(63), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("value", sa.Float, nullable=False),
        sa.Column("threshold", sa.Float, nullable=False),
        sa.Column("since", sa.String(25), nullable=False),
        sa.Column("checked_at", sa.String(25), nullable=False),
    )
    op.create_table(
        "alert_messages",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(25), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.String(25), nullable=False),
    )
    op.create_index("idx_alert_messages_next", "alert_messages", ["next_at"])
