"""Metadata has a limit, and a document must not fail because much could be said about it."""

from __future__ import annotations

import json
from collections.abc import Iterable

MAX_BYTES = 8 * 1024
"""What one list of names or keywords may take, as it is stored."""


def fitting(texts: Iterable[str]) -> list[str]:
    """The first texts of a list, as many as its share of the metadata holds."""
    kept = []
    left = MAX_BYTES
    for text in texts:
        left -= len(json.dumps(text)) + 2
        if left < 0:
            break
        kept.append(text)
    return kept
