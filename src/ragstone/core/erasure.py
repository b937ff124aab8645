"""What is erased, and the receipt that says what is left of it: nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

TargetKind = Literal["document", "source", "kb", "tenant"]
Counts = Mapping[str, Mapping[str, int]]
"""By store, and there by what it is: `{"ledger": {"chunks": 12}, "files": {"originals": 1}}`."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is to go: a document by its id, the others by their names. Only a source needs its kb."""

    kind: TargetKind
    name: str
    kb: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was removed, and what was found when everybody was asked again."""

    tenant: str
    target: Target
    removed: Counts
    remaining: Counts
    """Counted afterwards, in the same places."""
    requery: int | None
    """How much of it searches for its own words and vectors still find; None when that could not be asked."""
    scrubbed: bool
    """Whether its bytes are overwritten in the ledger's files. A database server does that when it sees fit."""
    unfinished: tuple[str, ...]
    """What could not be done yet, why, and what to do. The ledger remembers, so that it is not forgotten."""
    moment: datetime

    @property
    def complete(self) -> bool:
        """Whether nothing is left anywhere."""
        left = sum(sum(counts.values()) for counts in self.remaining.values())
        return not left and self.requery == 0 and not self.unfinished
