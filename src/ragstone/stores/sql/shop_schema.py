"""The tables of a shop and of the agents that serve its customers, among those of a tenant."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, MetaData, String, Table, Text


def define_shop(metadata: MetaData) -> None:
    """Add the tables. A service may be one of the tenant's own database, so no appointment refers to one here."""
    Table(
        "products",
        metadata,
        Column("tenant_id", String(32), primary_key=True),
        Column("id", String(64), primary_key=True),
        Column("name", String(255), nullable=False),
        Column("category", String(100), nullable=False),
        Column("brand", String(100), nullable=False),
        Column("description", Text, nullable=False),
        Column("price", String(20), nullable=True),
        Column("currency", String(3), nullable=False),
        Column("stock", Integer, nullable=True),
        Column("terms", Text, nullable=False),
        Column("language", String(8), nullable=False),
        Column("updated_at", String(25), nullable=False),
    )
    Table(
        "services",
        metadata,
        Column("tenant_id", String(32), primary_key=True),
        Column("id", String(64), primary_key=True),
        Column("name", String(255), nullable=False),
        Column("description", Text, nullable=False),
        Column("price", String(20), nullable=True),
        Column("currency", String(3), nullable=False),
        Column("minutes", Integer, nullable=False),
        Column("windows", Text, nullable=False),
        Column("timezone", String(64), nullable=False),
        Column("terms", Text, nullable=False),
        Column("language", String(8), nullable=False),
        Column("updated_at", String(25), nullable=False),
    )
    Table(
        "appointments",
        metadata,
        Column("tenant_id", String(32), primary_key=True),
        Column("id", String(32), primary_key=True),
        Column("service_id", String(64), nullable=False),
        Column("starts_at", String(25), nullable=False),
        Column("ends_at", String(25), nullable=False),
        Column("customer", Text, nullable=False),
        Column("status", String(16), nullable=False),
        Column("created_at", String(25), nullable=False),
        Index("idx_appointments_service", "service_id", "starts_at"),
        Index("idx_appointments_start", "starts_at"),
    )
    Table(
        "agent_settings",
        metadata,
        Column("tenant_id", String(32), primary_key=True),
        Column("agent", String(63), primary_key=True),
        Column("document", Text, nullable=False),
        Column("updated_at", String(25), nullable=False),
    )
