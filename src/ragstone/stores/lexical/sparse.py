"""Chunks and queries as sparse vectors, for an engine that adds up products of weights and knows how rare words are.

A chunk's weight of a word is what BM25 makes of how often it stands there and how long the chunk is. How rare the
word is, is left to the engine. The average length is part of every weight, so it is fixed for a while.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragstone.core.vectors import Words
from ragstone.stores.lexical.postings import K1, B, term_hashes

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def word_numbers(text: str) -> NDArray[np.uint32]:
    """A number of 32 bits for each blank-separated term. Points are stored under them: they never change.

    Two words with the same number count as one: of a million words, 0.02 % have a namesake.
    """
    return ((term_hashes(text) * _SPREAD) >> _HALF).astype(np.uint32)


def words_of(text: str, average: float) -> Words:
    """A chunk, by its analysed text, among chunks of that average length."""
    every = word_numbers(text)
    numbers, counts = np.unique(every, return_counts=True)
    norm = K1 * (1 - B + B * len(every) / max(average, 1.0))
    weights = counts * (K1 + 1) / (counts + norm)
    return Words(numbers.tolist(), weights.astype(np.float32).tolist())


def words_asked(terms: Sequence[str]) -> Words:
    """A query: each word once, however often it was said."""
    numbers = np.unique(word_numbers(" ".join(terms)))
    return Words(numbers.tolist(), [1.0] * len(numbers))
