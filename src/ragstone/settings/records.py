"""Settings of rows that are read from databases of others while somebody asks."""

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


class ShopMapping(SettingsModel):
    """The queries that read a shop from a database, each a SELECT; what has none is kept in the ledger."""

    database: str
    """A name from the setting `databases`."""
    products: str | None = None
    """Gives `id`, `name`, `category`, `brand`, `description`, `price`, `currency` and `stock`."""
    services: str | None = None
    """Gives `id`, `name`, `description`, `price`, `currency`, `minutes`, `windows` and `timezone`."""
    appointments: str | None = None
    """Gives `service_id`, `starts_at` and `ends_at` of what is booked; times without an offset are in UTC."""
    seconds: float = Field(default=1.0, gt=0, le=60)
    """Seconds that the database may take."""
