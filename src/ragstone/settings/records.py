"""Settings of rows that are looked up while somebody asks."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ragstone.settings.base import SettingsModel


class RecordSettings(SettingsModel):
    """Rows of databases, such as products with their price and stock: read when somebody asks, never stored."""

    k: int = Field(default=5, ge=1, le=100)
    """The number of rows that a query is given."""
    seconds: float = Field(default=1.0, gt=0, le=60)
    """Seconds that the databases may take."""
    keep_seconds: float = Field(default=0.0, ge=0, le=3600)
    """Seconds for which the same words get the same rows; 0 reads them for every query."""
    sets: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """By name: `database`, `query`, `key`, `tenant`, `words`, `text`, `title` and what it is `about`."""
