"""The Spaces of a kb beside the live one: what they lack, how they are filled, and which of them is live."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from ragstone.core.protocols import Embedder
from ragstone.core.types import KnowledgeBase, Space, Vector

EmbedderFor = Callable[[str], Awaitable[Embedder]]
"""Gives the embedder of a Space's model, or raises `ModelError`."""
GRACE_DAYS = 7
"""How long a Space is kept that was replaced."""
ReembedMode = Literal["full", "incremental", "dual"]
"""Build a Space and make it live; fill what the live one lacks; build one and keep both."""


@dataclass(frozen=True, slots=True)
class SpaceRecord:
    """A Space and how it stands."""

    space: Space
    vectors: int
    """Live chunks that have a vector in it."""
    chunks: int
    """Live chunks there are."""
    created_at: datetime
    retired_at: datetime | None = None
    keep_until: datetime | None = None
    """When a retired Space may go."""


class Lacking(NamedTuple):
    """A live chunk without a vector in some Space."""

    number: int
    text: str
    """What is to be embedded."""
    text_hash: bytes
    """Equal for equal text."""


class Stored(NamedTuple):
    """A live chunk as it was embedded."""

    text: str
    vector: Vector


Rows = Sequence[tuple[int, Vector]]
"""Vectors by the number of their chunk."""
Complete = Callable[[Sequence[Lacking]], Awaitable[Rows]]
"""Embeds the last few while nobody writes."""


class SpaceBook(Protocol):
    """The Spaces of all kbs of all tenants."""

    async def all(self, tenant: str, kb: KnowledgeBase) -> list[SpaceRecord]:
        """Oldest generation first."""
        ...

    async def outline(self, tenant: str, kb: KnowledgeBase) -> list[tuple[Space, datetime]]:
        """The Spaces of a kb and when each was made, oldest generation first: without counting, so it is cheap."""
        ...

    async def sample(self, tenant: str, kb: KnowledgeBase, space: Space, count: int, after: str) -> list[Stored]:
        """Some live chunks with their vectors: those whose ids follow `after`, and then from the first on."""
        ...

    async def models(self, tenant: str, kb: KnowledgeBase) -> set[str]:
        """The models that a kb has a Space of, whatever its state."""
        ...

    async def open(self, tenant: str, kb: KnowledgeBase, model: str, dimension: int) -> Space:
        """The Space of this model that is being built, or a new one of the next generation."""
        ...

    async def lacking(self, tenant: str, kb: KnowledgeBase, space: Space, after: int, limit: int) -> list[Lacking]:
        """Live chunks without a vector, in order of their numbers, behind number `after`."""
        ...

    async def coverage(self, tenant: str, kb: KnowledgeBase, space: Space) -> tuple[int, int]:
        """Return the number of live chunks with a vector in a Space, and of all live chunks."""
        ...

    async def known(self, tenant: str, space: Space, hashes: Sequence[bytes]) -> Mapping[bytes, Vector]:
        """Vectors that a Space already holds for equal text."""
        ...

    async def add(self, tenant: str, space: Space, rows: Rows) -> int:
        """Write vectors of chunks that are still there and have none; how many it were."""
        ...

    async def word_only(self, tenant: str, kb: KnowledgeBase) -> bool:
        """Return whether a live document is found by word only."""
        ...

    async def note_embedded(self, tenant: str, kb: KnowledgeBase, refused: Collection[int]) -> None:
        """Say of documents that lack nothing in the live Space but refused chunks that they are found by meaning."""
        ...

    async def promote(
        self,
        tenant: str,
        kb: KnowledgeBase,
        space: Space,
        *,
        keep_until: datetime,
        refused: Collection[int],
        complete: Complete,
    ) -> bool:
        """Make a Space the live one and retire the one that was, in one step.

        Only when no live chunk lacks a vector in it: a few that do are completed while nobody writes. False when
        there are too many for that.
        """
        ...

    async def expired(self, tenant: str, moment: datetime) -> list[Space]:
        """Retired Spaces of all kbs whose grace period was over at that moment."""
        ...

    async def drop(self, tenant: str, space: Space) -> bool:
        """Remove a Space with its vectors wherever they are; False when it is the live one, or has become it."""
        ...
