"""Runs the migrations of the control schema over the connection that `upgrade` hands in."""

from ragstone.stores.migrations.environment import run
from ragstone.stores.sql.control_schema import control

run(control, tenant_tables=False)
