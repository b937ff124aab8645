"""Settings of shops whose products, services or appointments are in a database of their own."""

from __future__ import annotations

from pydantic import Field

from ragstone.settings.base import SettingsModel


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
