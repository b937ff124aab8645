"""How large a chunk may be, and what is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragstone.core.errors import InputError
from ragstone.core.protocols import Tokenizer
from ragstone.ingest.chunkers.ruler import Ruler

VERSION = 2
"""Raised whenever any strategy would cut the same text differently."""
TINY = {"tokens": 100, "chars": 400}
"""A chunk below this says too little to be found by its meaning."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most a chunk holds and the most it repeats of the one before, in tokens or characters."""

    tokenizer: Tokenizer
    size: int = 400
    overlap: int = 50
    unit: Literal["tokens", "chars"] = "tokens"

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.size:
            raise InputError(
                f"an overlap of {self.overlap} does not go with a chunk size of {self.size}",
                hint="choose a size above 0 and an overlap from 0 to less than the size",
            )

    def ruler(self, text: str) -> Ruler:
        """Measures spans of this text in this unit."""
        return Ruler(text, self.tokenizer, self.unit)

    def least(self, min_size: int) -> int:
        """The size under which a chunk looks for a neighbour: what is asked for, or what is tiny for its size."""
        return min_size or min(TINY[self.unit], self.size // 4)

    @property
    def fingerprint(self) -> str:
        """All that decides where a text is cut, but for the strategy."""
        return f"v{VERSION} {self.size}/{self.overlap} {self.unit} tokenizer={self.tokenizer.name}"
