"""Runs the migrations of the control schema over the connection that `upgrade` hands in."""

from ragstone.stores.migrations.environment import run

run(tenant_tables=False)
