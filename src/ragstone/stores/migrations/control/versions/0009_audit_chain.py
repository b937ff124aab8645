"""Every entry of the audit record holds the hash of the one before; those that are there are chained as they stand."""

import sqlalchemy as sa
from alembic import op

from ragstone.stores.control.audit_chain import COLUMNS, START, hash_entry

revision = "0009"
down_revision = "0008"

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ROWS = 5000


def upgrade() -> None:
    for name in ("previous", "hash"):
        op.add_column("audit", sa.Column(name, sa.String(64), nullable=False, server_default=sa.text("''")))
    op.create_table(
        "audit_head",
        sa.Column("id", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "audit_gaps",
        sa.Column("previous", sa.String(64), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("entries", sa.BigInteger, nullable=False),
    )
    _chain_entries(op.get_bind())


def _chain_entries(connection: sa.Connection) -> None:
    query = sa.text(f"SELECT id, {COLUMNS} FROM audit WHERE id > :last ORDER BY id LIMIT {ROWS}")
    change = sa.text("UPDATE audit SET previous = :before, hash = :hash WHERE id = :id")
    last, before = -1, START
    while rows := connection.execute(query, {"last": last}).fetchall():
        changes = []
        for entry_id, *values in rows:
            own = hash_entry(before, values)
            changes.append({"id": entry_id, "before": before, "hash": own})
            last, before = entry_id, own
        connection.execute(change, changes)
    if before:
        connection.execute(sa.text("INSERT INTO audit_head (id, hash) VALUES (1, :hash)"), {"hash": before})
