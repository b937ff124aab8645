"""Findings about the installation and the stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragstone.core.errors import RagstoneError
from ragstone.core.remedies import Action, Remedy, advise

REPAIR = Remedy(Action.REPAIR_STORES)
FindingState = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing about one store."""

    store: str
    what: str
    state: FindingState
    """The state now: a repaired problem is `ok`."""
    detail: str
    repair: str = ""
    """The repair that was made or is needed, in words."""
    repaired: bool = False
    remedy: Remedy | None = None
    """The repair that is needed, as data."""

    @property
    def advice(self) -> str:
        """Return what was or is to be done, in the words of the surface that is in use."""
        return advise(self.repair, self.remedy)


def failure_finding(store: str, what: str, error: RagstoneError) -> HealthFinding:
    """Return the finding for a store that could not be looked at."""
    return HealthFinding(store, what, "fail", str(error), error.hint, remedy=error.remedy)


def repair_finding(
    store: str, what: str, detail: str, done: str, *, repaired: bool, state: FindingState = "warn"
) -> HealthFinding:
    """Return the finding for a problem that a repair solves: `done` says how, once it is `repaired`."""
    if repaired:
        return HealthFinding(store, what, "ok", detail, done, repaired=True)
    return HealthFinding(store, what, state, detail, remedy=REPAIR)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing about the installation; `fix` says what to do about it."""

    name: str
    state: FindingState
    detail: str
    fix: str = ""
