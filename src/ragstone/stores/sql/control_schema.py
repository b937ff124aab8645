"""The tables of the control database: tenants, what they have used, API keys and the audit record."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)

SERIAL = BigInteger().with_variant(Integer(), "sqlite")

control = MetaData()
tenants = Table(
    "tenants",
    control,
    Column("name", String(63), primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("created_at", String(25), nullable=False),
    Column("bell", Integer, nullable=False, server_default="0"),
    Column("state", String(16), nullable=False, server_default="active"),
    Column("quotas", Text, nullable=False, server_default="{}"),
    Column("retention_days", Integer, nullable=True),
    Column("settings", Text, nullable=False, server_default="{}"),
    Column("seed", String(63), nullable=True),
    Column("has_ledger", Integer, nullable=False, server_default="0"),
)
usage = Table(
    "usage",
    control,
    Column("tenant_id", String(32), ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String(63), primary_key=True),
    Column("period", String(16), primary_key=True),
    Column("used", Float, nullable=False),
)
reservations = Table(
    "reservations",
    control,
    Column("id", String(32), primary_key=True),
    Column("name", String(63), primary_key=True),
    Column("tenant_id", String(32), ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False),
    Column("amount", Float, nullable=False),
    Column("expires_at", String(25), nullable=False),
    Index("idx_reservations_tenant", "tenant_id", "name"),
)
resting_names = Table(
    "resting_names",
    control,
    Column("name", String(63), primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("until", String(25), nullable=False),
)
api_keys = Table(
    "api_keys",
    control,
    Column("id", String(16), primary_key=True),
    Column("name", String(63), nullable=False),
    Column("tenant_id", String(32), ForeignKey("tenants.id", ondelete="CASCADE"), nullable=True),
    Column("scopes", String(31), nullable=False),
    Column("kbs", Text, nullable=False),
    Column("created_at", String(25), nullable=False),
    Column("expires_at", String(25), nullable=True),
    Column("revoked_at", String(25), nullable=True),
    Column("secret_hash", String(64), nullable=False),
    Column("per_minute", Integer, nullable=True),
    Column("minute", String(16), nullable=True),
    Column("used", Integer, nullable=False, server_default=text("0")),
    Index("idx_api_keys_tenant", "tenant_id"),
)
stored_replies = Table(
    "stored_replies",
    control,
    Column("id", String(64), primary_key=True),
    Column("tenant_id", String(32), ForeignKey("tenants.id", ondelete="CASCADE"), nullable=True),
    Column("fingerprint", String(64), nullable=False),
    Column("owner", String(32), nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("sealed", LargeBinary, nullable=True),
    Index("idx_stored_replies_tenant", "tenant_id"),
    Index("idx_stored_replies_expires_at", "expires_at"),
)
audit = Table(
    "audit",
    control,
    Column("id", SERIAL, primary_key=True),
    Column("moment", String(25), nullable=False),
    Column("tenant_id", String(32), nullable=False),
    Column("tenant", String(63), nullable=False),
    Column("actor", String(127), nullable=False),
    Column("action", String(31), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("target", String(255), nullable=False),
    Column("kb", String(63), nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("document_ids", Text, nullable=False),
    Column("counts", Text, nullable=False),
    Column("detail", String(255), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("request_id", String(127), nullable=False, server_default=text("''")),
    Column("previous", String(64), nullable=False, server_default=text("''")),
    Column("hash", String(64), nullable=False, server_default=text("''")),
    Index("idx_audit_tenant", "tenant_id", "id"),
    Index("idx_audit_kept", "kind", "moment"),
    sqlite_autoincrement=True,
)
"""No key leads to the tenant: the record of its deletion stays."""
audit_head = Table(
    "audit_head",
    control,
    Column("id", SERIAL, primary_key=True, autoincrement=False),
    Column("hash", String(64), nullable=False),
)
"""One row: the hash of the last entry of the audit record."""
audit_gaps = Table(
    "audit_gaps",
    control,
    Column("previous", String(64), primary_key=True),
    Column("hash", String(64), nullable=False),
    Column("entries", BigInteger, nullable=False),
)
"""Entries of the audit record that were pruned: the hash before the first of a row of them, and that of the last."""
alerts = Table(
    "alerts",
    control,
    Column("tenant_id", String(32), primary_key=True),
    Column("rule", String(63), primary_key=True),
    Column("tenant", String(63), nullable=False),
    Column("state", String(16), nullable=False),
    Column("value", Float, nullable=False),
    Column("threshold", Float, nullable=False),
    Column("since", String(25), nullable=False),
    Column("checked_at", String(25), nullable=False),
)
"""The state of each rule that has ever fired; without a tenant for what concerns all. It goes with its tenant."""
alert_messages = Table(
    "alert_messages",
    control,
    Column("id", String(32), primary_key=True),
    Column("tenant_id", String(32), nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", String(25), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", String(25), nullable=False),
    Index("idx_alert_messages_next", "next_at"),
)
"""Messages that the webhook has not taken yet."""
