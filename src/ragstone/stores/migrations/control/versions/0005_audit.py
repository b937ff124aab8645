"""The audit record, which outlives its tenants."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", SERIAL, primary_key=True),
        sa.Column("moment", sa.String(25), nullable=False),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(63), nullable=False),
        sa.Column("actor", sa.String(127), nullable=False),
        sa.Column("action", sa.String(31), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("target", sa.String(255), nullable=False),
        sa.Column("kb", sa.String(63), nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("document_ids", sa.Text, nullable=False),
        sa.Column("counts", sa.Text, nullable=False),
        sa.Column("detail", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_audit_tenant", "audit", ["tenant_id", "id"])
    op.create_index("idx_audit_kept", "audit", ["kind", "moment"])
