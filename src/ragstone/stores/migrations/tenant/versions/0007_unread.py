"""Items that the last run of a source could not read."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("sources", sa.Column("unread", sa.JSON, nullable=False, server_default="{}"))
