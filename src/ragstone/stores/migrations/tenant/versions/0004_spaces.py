"""When a Space stopped being the live one, and until when it is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("spaces", sa.Column("retired_at", sa.String(25), nullable=True))
    op.add_column("spaces", sa.Column("keep_until", sa.String(25), nullable=True))
