"""A ledger that acts for one tenant: what repositories are built on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.repository import UnknownTenant
from ragstone.stores.sql.database import Connection

T = TypeVar("T")
Rows = Callable[[Connection, str], T]
"""Reads or writes rows: given a connection and the tenant's id."""


@dataclass(frozen=True, slots=True)
class TenantLedger:
    """The rows of one tenant."""

    ledger: SqlLedger
    tenant: str

    async def read(self, rows: Rows[T], otherwise: T) -> T:
        """Return what `rows` reads in one snapshot, or `otherwise` while there is no such tenant."""
        try:
            return await self.ledger.read(self.tenant, rows)
        except UnknownTenant:
            return otherwise

    async def write(self, rows: Rows[T]) -> T:
        """Run `rows` as a transaction of its own."""
        return await self.ledger.write(self.tenant, rows)

    async def read_log(self, rows: Rows[T], otherwise: T) -> T:
        """Return what `rows` reads in the retrieval log, or `otherwise` while there is no tenant or no log."""
        try:
            return await self.ledger.read_log(self.tenant, rows, otherwise)
        except UnknownTenant:
            return otherwise

    async def write_log(self, rows: Rows[T]) -> T:
        """Run `rows` as a transaction on the retrieval log; a crash may cost the last of them."""
        return await self.ledger.write_log(self.tenant, rows)
