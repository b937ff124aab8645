"""Runs the migrations of the tenant schema over the connection that `upgrade` hands in."""

from ragstone.stores.migrations.environment import run
from ragstone.stores.sql.schema import tenant

run(tenant, tenant_tables=True)
