"""Runs the migrations of the tenant schema over the connection that `upgrade` hands in."""

from alembic import context

from ragstone.stores.schema import tenant as target

context.configure(
    connection=context.config.attributes["connection"], target_metadata=target, transactional_ddl=True
)
context.run_migrations()
