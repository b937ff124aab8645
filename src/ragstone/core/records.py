"""What came of looking up rows."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.types import Hit


@dataclass(frozen=True, slots=True)
class RecordFindings:
    """Rows for a query, best first. `problem` says which could not be read."""

    rows: tuple[Hit, ...]
    problem: str = ""
