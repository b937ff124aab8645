"""Tenants get a bell that rings when there is work for them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("tenants", sa.Column("bell", sa.Integer, nullable=False, server_default="0"))
