"""Counters of a tenant, watermarks of the indexes that follow it elsewhere."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "counters",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(31), primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "watermarks",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("index_name", sa.String(127), primary_key=True),
        sa.Column("space_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("dimension", sa.Integer, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        # SQLite counted these itself until now; a file is one tenant's.
        op.execute(
            "INSERT INTO counters (tenant_id, name, value) SELECT k.tenant_id, s.name, s.seq FROM sqlite_sequence s, "
            "(SELECT tenant_id FROM knowledge_bases LIMIT 1) k WHERE s.name IN ('chunks', 'changes')"
        )
