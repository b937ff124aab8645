"""What a PostgreSQL database must be like for tenants to be safe in it."""

from __future__ import annotations

from ragstone.core.health import Finding
from ragstone.stores import schema
from ragstone.stores.database import Connection

STORE = "postgres"
GUARDED = sorted({*schema.tenant.tables, *schema.postgres.tables})
UNGUARDED = (
    "SELECT c.relname FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid "
    "LEFT JOIN pg_class p ON p.oid = i.inhparent WHERE c.relnamespace = 'ragstone'::regnamespace "
    "AND c.relkind IN ('r', 'p') AND coalesce(p.relname, c.relname) = ANY(?) "
    "AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY c.relname"
)


def check_database(connection: Connection) -> list[Finding]:
    """Version, extension, role and row-level security."""
    (version,) = connection.execute("SELECT current_setting('server_version')").fetchone()
    return [
        Finding(STORE, "reachable", "ok", f"PostgreSQL {version}"),
        _extension(connection),
        _role(connection),
        _security(connection),
    ]


def _extension(connection: Connection) -> Finding:
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        repair = "CREATE EXTENSION vector; as the owner of the database, or as a superuser"
        return Finding(STORE, "extension", "fail", "vector is not installed", repair)
    return Finding(STORE, "extension", "ok", f"vector {row[0]}")


def _role(connection: Connection) -> Finding:
    name, is_above = connection.execute(
        "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if is_above:
        repair = "connect as a role with NOSUPERUSER NOBYPASSRLS"
        return Finding(STORE, "role", "fail", f"{name} sees the rows of all tenants", repair)
    return Finding(STORE, "role", "ok", f"{name} is under row-level security")


def _security(connection: Connection) -> Finding:
    open_tables = [name for (name,) in connection.execute(UNGUARDED, (GUARDED,)).fetchall()]
    if open_tables:
        repair = f"ALTER TABLE ragstone.{open_tables[0]} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        return Finding(STORE, "row-level security", "fail", f"not forced on {', '.join(open_tables)}", repair)
    return Finding(STORE, "row-level security", "ok", "forced on every table of tenants")
