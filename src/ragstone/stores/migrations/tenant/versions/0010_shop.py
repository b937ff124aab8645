"""Products, services and appointments of a shop, and the settings of agents."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "products",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("category", sa.String(100), nullable=False),
        sa.Column("brand", sa.String(100), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("price", sa.String(20), nullable=True),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("stock", sa.Integer, nullable=True),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        sa.Column("updated_at", sa.String(25), nullable=False),
    )
    op.create_table(
        "services",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("price", sa.String(20), nullable=True),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("minutes", sa.Integer, nullable=False),
        sa.Column("windows", sa.Text, nullable=False),
        sa.Column("timezone", sa.String(64), nullable=False),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("language", sa.String(8), nullable=False),
        sa.Column("updated_at", sa.String(25), nullable=False),
    )
    op.create_table(
        "appointments",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("service_id", sa.String(64), nullable=False),
        sa.Column("starts_at", sa.String(25), nullable=False),
        sa.Column("ends_at", sa.String(25), nullable=False),
        sa.Column("customer", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", sa.String(25), nullable=False),
    )
    op.create_index("idx_appointments_service", "appointments", ["service_id", "starts_at"])
    op.create_index("idx_appointments_start", "appointments", ["starts_at"])
    op.create_table(
        "agent_settings",
        sa.Column("tenant_id", sa.String(32), primary_key=True),
        sa.Column("agent", sa.String(63), primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("updated_at", sa.String(25), nullable=False),
    )
