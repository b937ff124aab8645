"""Runs the migrations of the control schema over the connection that `upgrade` hands in."""

from alembic import context

from ragstone.stores.schema import control as target

context.configure(
    connection=context.config.attributes["connection"], target_metadata=target, transactional_ddl=True
)
context.run_migrations()
