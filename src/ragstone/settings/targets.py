"""Targets of search and ingest, and the bounds of an alarm."""

from __future__ import annotations

from pydantic import model_validator

from ragstone.settings.base import SettingsModel


class Target(SettingsModel):
    """A bound on one measured figure, such as `recall@10` or `fast.p95_ms`."""

    above: float | None = None
    below: float | None = None
    alert: float | None = None
    """Beyond this, on the wrong side of the bound, it is not only missed but alarming."""

    @model_validator(mode="after")
    def _one_bound(self) -> Target:
        if (self.above is None) == (self.below is None):
            raise ValueError("a target is either 'above' or 'below' something")
        return self

    def is_met(self, value: float) -> bool:
        """Return whether a figure meets the bound."""
        return value > self.above if self.above is not None else value < (self.below or 0.0)

    def alarms(self, value: float) -> bool:
        """Return whether a figure misses the bound by enough for an alarm."""
        if self.alert is None:
            return False
        return value < self.alert if self.above is not None else value > self.alert

    def __str__(self) -> str:
        return f"> {self.above:g}" if self.above is not None else f"< {self.below:g}"
