"""The seam between a ledger and an index that lives in the same database.

Such an index is written inside the ledger's own transaction: what commits, commits in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ragstone.stores.database import Connection


class ColocatedIndex(Protocol):
    """Kept in step by the ledger. All methods run on the writer's thread, inside a transaction."""

    def open(self, connection: Connection, kb_id: int) -> None:
        """Make what a new kb needs."""
        ...

    def add(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        """Index (chunk number, analysed text) pairs that go live."""
        ...

    def remove(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        """Take out (chunk number, analysed text) pairs that are live no more."""
        ...

    def drop(self, connection: Connection, kb_id: int) -> None:
        """Remove everything of a kb."""
        ...
