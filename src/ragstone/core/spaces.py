"""The Spaces of a kb beside the live one: what they lack, how they are filled, and which of them is live."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from ragstone.core.types import Space, Vector

GRACE_DAYS = 7
"""The days that a replaced Space is kept."""
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
    """The text to embed."""
    text_hash: bytes
    """Equal for equal text."""


class EmbeddedText(NamedTuple):
    """A live chunk as it was embedded."""

    text: str
    vector: Vector


Rows = Sequence[tuple[int, Vector]]
"""Vectors by the number of their chunk."""
Complete = Callable[[Sequence[Lacking]], Awaitable[Rows]]
"""Embeds the last few while nobody writes."""
