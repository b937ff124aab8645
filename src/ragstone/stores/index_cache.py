"""Parts of an index kept in memory, in step with the ledger's change feed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragstone.core.filters import Filter
from ragstone.stores.ledger.reads import read_sequence
from ragstone.stores.sql.database import Connection

Key = tuple[str, str, int]


class Resident(Protocol):
    """Something that knows how much memory it takes."""

    @property
    def bytes(self) -> int: ...


R = TypeVar("R", bound=Resident)


class Following(Generic[R]):
    """A resident and the place in the change feed up to which it is true."""

    def __init__(self, resident: R) -> None:
        self.resident = resident
        self.sequence = 0
        self.version = -1
        """The file's version when it was last true; equal versions mean that nothing was committed since."""
        self.lock = threading.Lock()


class IndexCache:
    """All that is kept in memory, by (kind, tenant, number)."""

    def __init__(self, memory_mb: int) -> None:
        self._budget = memory_mb * 1024 * 1024
        self._kept: OrderedDict[Key, Following[Resident]] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: Key, make: Callable[[], Resident]) -> Following[Resident]:
        """The one resident of that key, made if there is none."""
        with self._guard:
            if key not in self._kept:
                self._kept[key] = Following(make())
            self._kept.move_to_end(key)
            return self._kept[key]

    def trim(self) -> None:
        """Let go of the least recently used until the rest fits; the newest always stays."""
        with self._guard:
            total = sum(following.resident.bytes for following in self._kept.values())
            while total > self._budget and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                total -= dropped.resident.bytes


LIVE = "JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version"


class Follower(Resident, Protocol):
    """A resident that can let go of single chunks."""

    def remove(self, numbers: Iterable[int]) -> None: ...


F = TypeVar("F", bound=Follower)
Load = Callable[[F, str, Sequence[Any]], None]
"""Reads chunks into a resident: those that a condition over `c.seq`, given with its values, lets through."""


def behind(connection: Connection, tenant_id: str, following: Following[F]) -> int:
    """Count the changes that the resident has not seen."""
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
        f"SELECT c.seq FROM chunks c {LIVE} WHERE c.tenant_id = ? AND c.kb_id = ? AND {filtered}", parameters
    )
    return np.fromiter((number for (number,) in rows), np.int64)


def _reaches_back(connection: Connection, tenant_id: str, sequence: int) -> bool:
    # The feed is shortened from time to time; a resident that is older than its start reads everything anew.
    oldest = connection.execute("SELECT min(seq) FROM changes WHERE tenant_id = ?", (tenant_id,)).fetchone()[0]
    return sequence > 0 and oldest is not None and oldest <= sequence + 1
