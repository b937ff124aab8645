"""What every part of the settings has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the tree: unknown keys are errors, and nothing changes after it is built."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
