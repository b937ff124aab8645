"""Names that were let go rest: for a while nobody is given them but the tenant that had them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "resting_names",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("until", sa.String(25), nullable=False),
    )
