"""PostgreSQL's own BM25 index: a row for every word of every live chunk, and what it takes to weigh them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.create_table(
        "postings",
        sa.Column("kb_id", sa.BigInteger, nullable=False),
        sa.Column("chunk_seq", sa.BigInteger, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("length", sa.Integer, nullable=False),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("term", sa.String(64), nullable=False),
    )
    op.create_index("idx_postings_term", "postings", ["kb_id", "term", "chunk_seq", "count", "length"])
    op.create_table(
        "lexical_statistics",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("kb_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("chunks", sa.BigInteger, nullable=False),
        sa.Column("length", sa.BigInteger, nullable=False),
    )
