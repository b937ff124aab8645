"""Runs the migrations of the tenant schema over the connection that `upgrade` hands in."""

from ragstone.stores.migrations.environment import run

run(tenant_tables=True)
