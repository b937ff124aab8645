"""What a look at the stores has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

REPAIR = "ragstone doctor --repair"
FindingState = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one store."""

    store: str
    what: str
    state: FindingState
    """How it is now: what was repaired is `ok`."""
    detail: str
    repair: str = ""
    """What was done about it, or what to type."""
    repaired: bool = False
