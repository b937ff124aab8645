"""Keeping resident parts of an index in step with the ledger's change feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragstone.core.filters import Filter, Scalar
from ragstone.stores.database import Connection
from ragstone.stores.ledger.reads import read_sequence
from ragstone.stores.residents import Following, Resident

LIVE = "JOIN documents d ON d.id = c.document_id AND d.version = c.version"


class Follower(Resident, Protocol):
    """A resident that can let go of single chunks."""

    def remove(self, numbers: Iterable[int]) -> None: ...


F = TypeVar("F", bound=Follower)


def behind(connection: Connection, tenant_id: str, following: Following[F]) -> int:
    """How many changes the resident has not seen."""
    return max(0, read_sequence(connection, tenant_id) - following.sequence)


def catch_up(
    connection: Connection,
    tenant_id: str,
    kb_id: int,
    following: Following[F],
    empty: Callable[[], F],
    load: Callable[[F, str], None],
) -> None:
    """Apply what was committed since; `load` is given the condition, over `c.seq`, of the chunks to read."""
    newest = read_sequence(connection, tenant_id)
    if newest <= following.sequence:
        return
    if _reaches_back(connection, tenant_id, following.sequence):
        gone = connection.execute(
            "SELECT chunk_seq FROM changes WHERE tenant_id = ? AND seq > ? AND kb_id = ? AND operation = 'tombstone'",
            (tenant_id, following.sequence, kb_id),
        ).fetchall()
        following.resident.remove(number for (number,) in gone)
        changed = f"SELECT chunk_seq FROM changes WHERE seq > {following.sequence} AND operation = 'upsert'"
        load(following.resident, f"c.seq IN ({changed})")
    else:
        fresh = empty()
        load(fresh, "1")
        following.resident = fresh
    following.sequence = newest


def allowed_numbers(connection: Connection, tenant_id: str, kb_id: int, where: Filter) -> NDArray[np.int64]:
    """Numbers of the live chunks that a filter lets through."""
    parameters: list[Scalar] = [tenant_id, kb_id]
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
