"""Measure text in tokens or characters, and the limits of a chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from ragstone.core.errors import InputError
from ragstone.core.protocols import Tokenizer

SLICE = 65_536
"""Characters tokenised at a time, so that a huge text does not become a huge list of tokens."""


class Ruler:
    """Answers how large a span is and how far a given size reaches, in tokens or characters."""

    def __init__(self, text: str, tokenizer: Tokenizer, unit: Literal["tokens", "chars"]) -> None:
        self.unit = unit
        self._length = len(text)
        offsets = [
            np.fromiter(chain.from_iterable(tokenizer.offsets(text[start:end])), np.int64).reshape(-1, 2)
            + start
            for start, end in _slices(text)
        ]
        joined = np.concatenate(offsets) if offsets else np.empty((0, 2), np.int64)
        # Bytes of one character share its place; whatever a tokenizer says, places never run backwards.
        self._starts = np.maximum.accumulate(joined[:, 0])
        self._ends = np.maximum.accumulate(joined[:, 1])

    def tokens(self, start: int, end: int) -> int:
        """How many tokens stand in the span, those at its edges included."""
        if end <= start:
            return 0
        before_end = int(self._starts.searchsorted(end, "left"))
        return max(0, before_end - int(self._ends.searchsorted(start, "right")))

    def size(self, start: int, end: int) -> int:
        """The size of a span in this ruler's unit."""
        return end - start if self.unit == "chars" else self.tokens(start, end)

    def reach(self, start: int, size: int) -> int:
        """The furthest end of a span from `start` that is no larger than `size`."""
        if self.unit == "chars":
            return min(self._length, start + size)
        beyond = int(self._ends.searchsorted(start, "right")) + size
        return int(self._starts[beyond]) if beyond < len(self._starts) else self._length

    def back(self, end: int, size: int) -> int:
        """The furthest start of a span up to `end` that is no larger than `size`."""
        if self.unit == "chars":
            return max(0, end - size)
        beyond = int(self._starts.searchsorted(end, "left")) - size - 1
        return int(self._ends[beyond]) if beyond >= 0 else 0


def _slices(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = min(len(text), start + SLICE)
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space if space > start else end
        yield start, end
        start = end


VERSION = 2
"""Raised whenever any strategy would cut the same text differently."""
TINY = {"tokens": 100, "chars": 400}
"""A chunk below this says too little to be found by its meaning."""


@dataclass(frozen=True, slots=True)
class ChunkLimits:
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
