"""Measures spans of one text, which is tokenised once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal

import numpy as np

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
