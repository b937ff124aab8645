"""Record that a tenant's ledger file was made: one that is missing afterwards is lost, not new."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("tenants", sa.Column("has_ledger", sa.Integer, nullable=False, server_default="0"))
