"""Numbers that JSON does not have, in the facts of jobs that SQLite took in: null, so that SQL reads them."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":  # PostgreSQL has refused them
        return
    for job_id, facts in connection.execute(sa.text("SELECT id, facts FROM jobs WHERE NOT json_valid(facts)")).all():
        connection.execute(
            sa.text("UPDATE jobs SET facts = :facts WHERE id = :id"),
            {"facts": json.dumps(json.loads(facts, parse_constant=lambda _: None)), "id": job_id},
        )
