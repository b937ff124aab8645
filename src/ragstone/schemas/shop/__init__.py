"""Products, services, slots and appointments of a shop."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time
from decimal import Decimal
from typing import Any, Self

from ragstone.core.shop import Status
from ragstone.core.types import Json
from ragstone.schemas.schema import Moment, Schema


class _PricedSchema(Schema):
    """Something with a price, which is a decimal number as text, so that no digit is lost; null means on request."""

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of an entry."""
        return super().of(source, price=None if source.price is None else str(source.price), **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of an entry, with its price as a number."""
        price = data.get("price")
        return {**data, "price": None if price is None else Decimal(price)}


class ProductSchema(_PricedSchema):
    """A product. Its price is a decimal number as text, so that no digit is lost; null means on request."""

    id: str
    name: str
    category: str
    brand: str
    description: str
    price: str | None
    currency: str
    stock: int | None
    updated_at: Moment


class ProductListSchema(Schema):
    """Products, and the id that the next page follows; null when there is none."""

    products: list[ProductSchema]
    next: str | None


class WindowSchema(Schema):
    """Opening hours of a weekday, 0 being Monday, by the clock on the wall."""

    weekday: int
    opens: str
    closes: str

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a window."""
        return super().of(source, opens=f"{source.opens:%H:%M}", closes=f"{source.closes:%H:%M}", **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a window, with its hours as times."""
        return {**data, **{name: time.fromisoformat(data[name]) for name in ("opens", "closes")}}


class ServiceSchema(_PricedSchema):
    """A service with its opening hours; its price is a decimal number as text."""

    id: str
    name: str
    description: str
    price: str | None
    currency: str
    minutes: int
    windows: list[WindowSchema]
    timezone: str
    updated_at: Moment


class ServiceListSchema(Schema):
    """Services, and the id that the next page follows; null when there is none."""

    services: list[ServiceSchema]
    next: str | None


class SlotSchema(Schema):
    """A time at which a service can be booked: in UTC, and as the clock shows it where the service is."""

    service_id: str
    starts_at: Moment
    ends_at: Moment
    local_start: str
    local_end: str

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a slot."""
        local = {"local_start": source.starts_at.isoformat(), "local_end": source.ends_at.isoformat()}
        return super().of(source, **local, **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a slot, with the offset of its zone."""
        return {**data, "starts_at": data["local_start"], "ends_at": data["local_end"]}


class SlotListSchema(Schema):
    """Free slots in order of time."""

    slots: list[SlotSchema]


class AppointmentSchema(Schema):
    """A booking of a service."""

    id: str
    service_id: str
    starts_at: Moment
    ends_at: Moment
    customer: str
    status: Status
    created_at: Moment


class AppointmentListSchema(Schema):
    """Appointments in order of time."""

    appointments: list[AppointmentSchema]


class RemovedEntrySchema(Schema):
    """The id of a product or service that was removed."""

    removed: str


class ShopImportSchema(Schema):
    """The number of products and services that a table brought."""

    products: int
    services: int
