"""How an error becomes the failure of one item."""

from __future__ import annotations

from ragstone.core.errors import RagstoneError
from ragstone.core.types import Failure


def failure_of(uri: str, error: RagstoneError, said: str = "") -> Failure:
    """Why this item could not be taken in, and what to do about it; `said` in place of the error's own words."""
    return Failure(uri, error.code, said or str(error), error.hint)
