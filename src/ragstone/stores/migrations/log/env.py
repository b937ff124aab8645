"""Runs the migrations of the retrieval log's own file over the connection that `upgrade` hands in."""

from ragstone.stores.migrations.environment import run

run(tenant_tables=True)
