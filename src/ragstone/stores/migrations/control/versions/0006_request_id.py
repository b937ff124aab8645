"""The request that an entry of the audit record was made for."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("audit", sa.Column("request_id", sa.String(127), nullable=False, server_default=sa.text("''")))
