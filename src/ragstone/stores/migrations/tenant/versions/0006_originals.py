"""Sizes of originals beside their jobs; more names of documents and chunks as PostgreSQL views."""

import sqlalchemy as sa
from alembic import op

from ragstone.stores.migrations.postgres_records import RECORDS

revision = "0006"
down_revision = "0005"

WEIGH = """
UPDATE jobs SET stored = size WHERE kind = 'document' AND {original} IS NOT NULL
    AND (CASE WHEN state = 'completed' THEN {kept} AND NOT EXISTS ({newer} AND n.state = 'completed')
        ELSE NOT EXISTS ({newer}) END)
"""
NEWER = (
    "SELECT 1 FROM jobs n WHERE n.tenant_id = jobs.tenant_id AND n.document_id = jobs.document_id AND n.seq > jobs.seq"
)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("stored", sa.BigInteger, nullable=False, server_default="0"))
    op.create_index("idx_jobs_stored", "jobs", ["tenant_id", "state", "stored"])
    if op.get_bind().dialect.name == "sqlite":
        original, kept = "json_extract(facts, '$.original')", "coalesce(json_extract(facts, '$.keep'), 0)"
        op.execute(WEIGH.format(original=original, kept=kept, newer=NEWER))
        return
    weigh = WEIGH.format(original="facts ->> 'original'", kept="coalesce(facts -> 'keep' = 'true', FALSE)", newer=NEWER)
    # Rows are seen by their tenant alone, also here.
    for (tenant_id,) in op.get_bind().execute(sa.text("SELECT id FROM tenants")).fetchall():
        op.get_bind().execute(sa.text("SELECT set_config('ragstone.tenant', :id, true)"), {"id": tenant_id})
        op.execute(sa.text(weigh.replace(":", r"\:")))
    op.get_bind().execute(sa.text("SELECT set_config('ragstone.tenant', '', true)"))
    for statement in RECORDS:
        op.execute(sa.text(statement.replace(":", r"\:")))
