"""A tenant's own part of PostgreSQL's large tables.

A search asks the part itself instead of the whole. The policy there names its tenant outright, so it is settled when
the query is planned, and an index can answer alone.
"""

from __future__ import annotations

import re

TENANT_ID = re.compile(r"[0-9a-z]{1,32}")


def part(table: str, tenant_id: str) -> str:
    """The name of a tenant's part of a table, as it stands in SQL."""
    if not TENANT_ID.fullmatch(tenant_id):
        raise ValueError(f"{tenant_id!r:.40} is no tenant's id")
    return f'ragstone."{table}_{tenant_id}"'
