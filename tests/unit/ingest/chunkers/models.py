"""Stand-ins for the model that chunkers ask: texts are alike by the words, or the subject, they share."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np

from ragstone.core.types import Matrix

DIRECTIONS = 32
WORD = re.compile(r"\w+")


def by_words(texts: Sequence[str]) -> Matrix:
    """Each word points into one of a few directions; a text without words has none."""
    rows = np.zeros((len(texts), DIRECTIONS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in WORD.findall(text.lower()):
            row[zlib.crc32(word.encode("utf-8", "surrogatepass")) % DIRECTIONS] += 1
    return unit_length(rows)


class Subjects:
    """A text points to the subjects it names, and nowhere else. `asked` are the texts of all calls."""

    def __init__(self, *subjects: str) -> None:
        self.subjects = subjects
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Matrix:
        self.asked += texts
        counts = [[text.count(subject) for subject in self.subjects] for text in texts]
        return unit_length(np.array(counts, np.float32))


def unit_length(rows: Matrix) -> Matrix:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)
