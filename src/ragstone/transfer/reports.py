"""Reports of archives and migrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ragstone.core.types import Json

OnMove = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is, and how much there is; 0 when that is not known."""
SHOWN = 100
"""The number of differences that are named."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The contents of an archive."""

    path: str
    tenant: str
    kbs: tuple[str, ...]
    documents: int
    chunks: int
    vectors: int
    files: int
    sources: int
    bytes: int
    """Of the archive itself."""
    remarks: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The outcome of an import, by documents."""

    path: str
    tenant: str
    kbs: tuple[str, ...]
    added: int
    replaced: int
    unchanged: int
    differing: tuple[str, ...]
    """Some of those that were left as they are here, by uri."""
    left: int
    """The number that were left so."""
    chunks: int
    files: int
    sources: int
    remarks: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences of two stores: their number, and some of them in words."""

    count: int = 0
    named: tuple[str, ...] = ()

    def __add__(self, other: Differences) -> Differences:
        return Differences(self.count + other.count, (self.named + other.named)[:SHOWN])

    @classmethod
    def of(cls, *said: str) -> Differences:
        return cls(len(said), said[:SHOWN])


NONE = Differences()


@dataclass(frozen=True, slots=True)
class TenantMove:
    """The outcome of the migration of one tenant."""

    tenant: str
    kbs: int
    documents: int
    chunks: int
    vectors: int
    """Vectors that were compared, over all Spaces."""
    written: int
    """The number of writes: points of a vector database, documents of a ledger."""
    searches: int
    agreement: float
    """The share of results that both sides gave to the same questions."""
    differences: Differences
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MoveReport:
    """The outcome of a migration, and the settings that use its result."""

    to: str
    tenants: tuple[TenantMove, ...]
    settings: Mapping[str, Json]
    """To be merged into the settings; without secrets."""
    secrets: tuple[str, ...] = field(default=())
    """Settings that are needed too and not shown."""
    seconds: float = 0.0

    @property
    def is_equal(self) -> bool:
        """Return whether the target holds everything as the source does."""
        return not any(move.differences.count for move in self.tenants)
