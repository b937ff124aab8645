"""Run the migrations with alembic, on either database."""

from __future__ import annotations

from typing import Any, cast

from alembic import context
from alembic.ddl.impl import DefaultImpl
from sqlalchemy import Connection


def run(*, tenant_tables: bool) -> None:
    """Bring what `upgrade` has connected to up to date."""
    attributes = context.config.attributes
    connection: Connection = attributes["connection"]
    options: dict[str, Any] = {"tenant_tables": tenant_tables}
    context.configure(
        connection=connection,
        transactional_ddl=True,
        version_table=attributes.get("version_table", "alembic_version"),
        **options,
    )
    if connection.dialect.name == "postgresql":
        from ragstone.stores.migrations.postgres_shape import ShapedTables

        # For this run alone: an application around us may have migrations of its own.
        shaped = ShapedTables(connection.dialect, connection, False, True, None, options)
        context.get_context().impl = cast("DefaultImpl", shaped)
    context.run_migrations()
