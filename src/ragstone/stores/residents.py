"""Parts of indexes kept in memory: one budget over all tenants, least recently used out first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

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


class Residents:
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
