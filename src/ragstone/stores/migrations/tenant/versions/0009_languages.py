"""The languages that the documents of a knowledge base were analysed by, and an index of their words on PostgreSQL."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("knowledge_bases", sa.Column("languages", sa.Text, nullable=False, server_default=sa.text("''")))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE INDEX IF NOT EXISTS idx_terms_marked ON terms "
            "USING gin (string_to_array(terms, ' ')) WHERE terms LIKE '%~%'"
        )
