"""The seam of vector databases that live outside the ledger.

A provider is derived: whatever it holds was in the ledger first, and whatever it says is looked up there again.
So it has to be neither the truth nor in step at every moment; it has to be fast and honest about what it can do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, Json, Vector

Isolation = Literal["collection", "namespace", "filter"]
"""The separation of tenants: a collection each, a namespace each in one collection, or a condition on every call."""
RESERVED = ("tenant_id", "space", "chunk_id", "chunk_index", "text")
"""Payload names that are Ragstone's own; a filter on a metadata key of that name is answered by the ledger."""


@dataclass(frozen=True, slots=True)
class VectorPartition:
    """The place of one Space of one tenant. Both ids are opaque: they contain no names."""

    tenant_id: str
    space: str
    """Names the Space among all Spaces of all tenants."""
    dimension: int


class Words(NamedTuple):
    """A sparse vector: words as numbers, none twice, each with its weight."""

    numbers: Sequence[int]
    weights: Sequence[float]


class Point(NamedTuple):
    """A chunk as a provider stores it."""

    chunk_id: str
    vector: Vector
    """Empty when the chunk has none; only a `WordProvider` is given such points."""
    payload: Mapping[str, Json]
    """Flat: what a filter may name, with scalars or lists of scalars, and the names in `RESERVED`."""
    words: Words | None = None
    """The words of the chunk, for a `WordProvider`."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Features that an engine has itself; Ragstone does the rest."""

    isolation: frozenset[Isolation]
    max_dimension: int
    max_k: int
    """The largest number of results of one query."""
    exact: bool = False
    """True when its answer is a full scan, so that nothing near is ever missed."""
    sparse: bool = False
    """True when it is set up to hold words beside the vectors, and so is a `WordProvider`."""
    hybrid: bool = False
    """True when it fuses both arms itself."""
    reranking: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    """Facts that a provider reports about itself."""

    version: str
    detail: str = ""


class VectorProvider(Protocol):
    """One vector database. Every call names the `VectorPartition`, and none ever reaches beyond it."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def can_filter(self, where: Filter) -> bool:
        """Return whether the engine can apply this filter exactly as `core.filters.matches` does."""
        ...

    async def open(self, partition: VectorPartition) -> None:
        """Make what the partition needs; one that is there with another dimension is a `ModelMismatch`."""
        ...

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        """Store points; each is durable and found by the next search when this returns."""
        ...

    async def delete(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> None:
        """Remove points; ids that are not there do not matter."""
        ...

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        """Return the k nearest by cosine similarity (-1 to 1), best first; none if the partition was never opened."""
        ...

    async def read(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[Point]:
        """Return those of the points that are there, in any order, with vectors of length one."""
        ...

    def ids(self, partition: VectorPartition) -> AsyncIterator[Sequence[str]]:
        """Yield the ids of all points, some at a time."""
        ...

    async def count(self, partition: VectorPartition) -> int: ...

    async def drop(self, partition: VectorPartition) -> None:
        """Remove everything of a partition; nothing happens when there is nothing."""
        ...

    async def health(self) -> Health:
        """Return the version and state; raise `StoreError` with a hint when the engine cannot be reached."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class WordProvider(VectorProvider, Protocol):
    """A vector database that can find by word as well, when its capabilities say `sparse`."""

    async def search_words(
        self, partition: VectorPartition, words: Words, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        """Return the k points with the highest sum of weights, each scaled by how rare the word is, best first."""
        ...

    async def misfit(self, partition: VectorPartition) -> str:
        """Return why the collection cannot hold the points of this partition; empty when it can or does not exist."""
        ...
