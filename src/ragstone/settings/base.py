"""The base of every part of the settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SettingsModel(BaseModel):
    """A frozen part of the settings tree; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
