"""Settings of rows that are looked up while somebody asks."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ragstone.settings.base import SettingsModel


class RecordSettings(SettingsModel):
    """Rows of databases, such as products with their price and stock: read anew for each query, never stored."""

    k: int = Field(default=5, ge=1, le=100)
    """The number of rows that a query is given."""
    seconds: float = Field(default=1.0, gt=0, le=60)
    """Seconds that the databases may take."""
    sets: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """By name: `database`, `query`, `key`, `tenant`, `words`, `text`, `title` and what it is `about`."""
