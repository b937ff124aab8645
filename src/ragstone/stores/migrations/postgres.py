"""Bring a PostgreSQL database to the newest schema, owned by a role under row-level security."""

from __future__ import annotations

from typing import Any

import psycopg

from ragstone.core.errors import StoreError
from ragstone.stores.ledger.postgres.session import connect
from ragstone.stores.migrations import HEADS, ONE_AT_A_TIME, run_migrations

OLDEST = 150000
SERVICE = "ragstone_service"
SCHEMAS = ("ragstone", "ragstone_views")
PATIENCE = "600s"
APPLIED = (
    "SELECT (SELECT version_num FROM ragstone.alembic_version_control), "
    "(SELECT version_num FROM ragstone.alembic_version_tenant)"
)


def ensure(dsn: str) -> None:
    """Apply what is missing; any number of processes may start at once."""
    with connect(dsn) as connection:
        if is_current(connection):
            return
    upgrade(dsn)


def is_current(connection: psycopg.Connection) -> bool:
    """Return whether the newest migrations have been applied."""
    try:
        return connection.execute(APPLIED).fetchone() == (HEADS["control"], HEADS["tenant"])
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return False


def upgrade(dsn: str) -> None:
    """Apply missing migrations in one transaction, while writers wait."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(dsn, client_encoding="utf8"), poolclass=NullPool
    )
    try:
        with ONE_AT_A_TIME, engine.begin() as connection:
            _prepare(connection)
            run_migrations(connection, "control", version_table="alembic_version_control")
            run_migrations(connection, "tenant", version_table="alembic_version_tenant")
    except DBAPIError as error:
        raise error.orig or error from error
    finally:
        engine.dispose()


def _prepare(connection: Any) -> None:
    """Wait for the lock; then create what the tables need: the extension, the schemas, and their owner."""
    run = connection.exec_driver_sql
    run(f"SELECT set_config('lock_timeout', '{PATIENCE}', true)")
    run("SELECT pg_advisory_xact_lock(hashtextextended('ragstone gate', 0))")
    version, encoding, user, is_above = run(
        "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), current_user, "
        "rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).one()
    if version < OLDEST:
        raise StoreError(f"the server is PostgreSQL {version // 10000}", hint="version 15 or newer is needed")
    if encoding != "UTF8":
        raise StoreError(f"the database keeps text as {encoding}", hint="make one with ENCODING 'UTF8'")
    _add_extension(run)
    role = _service(run) if is_above else user
    for schema in SCHEMAS:
        if run(f"SELECT to_regnamespace('{schema}')").scalar() is None:
            run(f'CREATE SCHEMA {schema} AUTHORIZATION "{role}"')
    owner = run("SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'ragstone'").scalar()
    vectors = run(
        "SELECT nspname FROM pg_namespace n JOIN pg_extension e ON e.extnamespace = n.oid WHERE extname = 'vector'"
    ).scalar()
    run(f'SET LOCAL ROLE "{owner}"')
    run(f'SET LOCAL search_path = ragstone, public, "{vectors}"')


def _add_extension(run: Any) -> None:
    from sqlalchemy.exc import DBAPIError

    try:
        run("CREATE EXTENSION IF NOT EXISTS vector")
    except DBAPIError as error:
        match error.orig:
            case psycopg.errors.InsufficientPrivilege():
                raise StoreError(
                    "the role in store.ledger.dsn may not add the extension 'vector'",
                    hint="have an administrator run in this database: CREATE EXTENSION vector",
                ) from error
            case psycopg.errors.UndefinedFile() | psycopg.errors.FeatureNotSupported():
                raise StoreError(
                    "the server does not have pgvector", hint="install pgvector 0.7 or newer on the server"
                ) from error
        raise
    if run("SELECT count(*) FROM pg_type WHERE typname = 'halfvec'").scalar() == 0:
        raise StoreError(
            "the database's pgvector is older than 0.7", hint="ALTER EXTENSION vector UPDATE, as an administrator"
        )


def _service(run: Any) -> str:
    """Return a role to act as instead of one that sees every tenant's rows."""
    from sqlalchemy.exc import DBAPIError

    try:
        run(
            f"DO $$ BEGIN CREATE ROLE {SERVICE} NOLOGIN; "
            "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        run(
            f"DO $$ BEGIN IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) "
            f"THEN GRANT {SERVICE} TO CURRENT_USER; END IF; END $$"
        )
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        raise StoreError(
            "the role in store.ledger.dsn is above row-level security, and may not make another to act as",
            hint="connect as a role with NOSUPERUSER NOBYPASSRLS that owns the database",
        ) from error
    return SERVICE
