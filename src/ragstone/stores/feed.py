"""Keeping resident parts of an index in step with the ledger's change feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragstone.core.filters import Filter
from ragstone.stores.database import Connection
from ragstone.stores.ledger.reads import read_sequence
from ragstone.stores.residents import Following, Resident

LIVE = "JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version"


class Follower(Resident, Protocol):
    """A resident that can let go of single chunks."""

    def remove(self, numbers: Iterable[int]) -> None: ...


F = TypeVar("F", bound=Follower)
Load = Callable[[F, str, Sequence[Any]], None]
"""Reads chunks into a resident: those that a condition over `c.seq`, given with its values, lets through."""


def behind(connection: Connection, tenant_id: str, following: Following[F]) -> int:
    """How many changes the resident has not seen."""
    return max(0, read_sequence(connection, tenant_id) - following.sequence)


def catch_up(
    connection: Connection,
    tenant_id: str,
    kb_id: int,
    following: Following[F],
    empty: Callable[[], F],
    load: Load[F],
    *,
    arrivals: Sequence[str] = ("upsert",),
) -> None:
    """Apply what was committed since."""
    newest = read_sequence(connection, tenant_id)
    if newest <= following.sequence:
        return
    if _reaches_back(connection, tenant_id, following.sequence):
        gone = connection.execute(
            "SELECT chunk_seq FROM changes WHERE tenant_id = ? AND seq > ? AND kb_id = ? AND operation = 'tombstone'",
            (tenant_id, following.sequence, kb_id),
        ).fetchall()
        following.resident.remove(number for (number,) in gone)
        changed = (
            "SELECT chunk_seq FROM changes WHERE tenant_id = ? AND seq > ? AND kb_id = ? "
            f"AND operation IN ({', '.join('?' * len(arrivals))})"
        )
        load(following.resident, f"c.seq IN ({changed})", (tenant_id, following.sequence, kb_id, *arrivals))
    else:
        fresh = empty()
        load(fresh, "TRUE", ())
        following.resident = fresh
    following.sequence = newest


def allowed_numbers(connection: Connection, tenant_id: str, kb_id: int, where: Filter) -> NDArray[np.int64]:
    """Numbers of the live chunks that a filter lets through."""
    parameters: list[Any] = [tenant_id, kb_id]
    filtered = connection.dialect.condition(where, parameters)
    rows = connection.execute(
        f"SELECT c.seq FROM chunks c {LIVE} WHERE c.tenant_id = ? AND c.kb_id = ? AND {filtered}",
        parameters,
    )
    return np.fromiter((number for (number,) in rows), np.int64)


def _reaches_back(connection: Connection, tenant_id: str, sequence: int) -> bool:
    # The feed is shortened from time to time; a resident that is older than its start reads everything anew.
    oldest = connection.execute("SELECT min(seq) FROM changes WHERE tenant_id = ?", (tenant_id,)).fetchone()[
        0
    ]
    return sequence > 0 and oldest is not None and oldest <= sequence + 1
