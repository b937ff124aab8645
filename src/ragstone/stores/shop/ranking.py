"""Finding entries of a table by words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragstone.language.catalogue import LONGEST_QUERY, rank
from ragstone.language.terms import terms_asked
from ragstone.stores.sql.database import Connection

MOST_ASKED = 24
"""Words of a query that are looked for."""


def find_ids(connection: Connection, tenant_id: str, table: str, query: str, limit: int) -> list[str]:
    """Return the ids of the entries of a table that a query is about, best first."""
    languages = [
        row[0]
        for row in connection.execute(
            f"SELECT DISTINCT language FROM {table} WHERE tenant_id = ? AND language <> ''", (tenant_id,)
        )
    ]
    asked = terms_asked(query[:LONGEST_QUERY], languages)[:MOST_ASKED]
    if not asked:
        return []
    patterns = [f"% {term} %" for terms in asked for term in terms]
    matching = " OR ".join(["terms LIKE ?"] * len(patterns))
    rows = connection.execute(
        f"SELECT id, terms FROM {table} WHERE tenant_id = ? AND ({matching}) ORDER BY id", (tenant_id, *patterns)
    ).fetchall()
    (total,) = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = ?", (tenant_id,)).fetchone()
    return rank([(row[0], row[1].split()) for row in rows], asked, int(total), limit)


def read_in_order(rows: Sequence[Sequence[Any]], ids: Sequence[str]) -> list[Sequence[Any]]:
    """Return rows, whose first column is the id, in the order of some ids."""
    found = {row[0]: row for row in rows}
    return [found[entry_id] for entry_id in ids if entry_id in found]
