"""Limits of keys: how many requests a minute, and how many of them are made in the minute that runs."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("per_minute", sa.Integer, nullable=True))
    op.add_column("api_keys", sa.Column("minute", sa.String(16), nullable=True))
    op.add_column("api_keys", sa.Column("used", sa.Integer, nullable=False, server_default=sa.text("0")))
