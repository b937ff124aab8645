"""The catalogue of a shop: what it sells, what can be booked there and when, and the seam to wherever this is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, time
from decimal import Decimal
from typing import Literal

from ragstone.core.clock import now

Status = Literal["booked", "cancelled"]


@dataclass(frozen=True, slots=True)
class Product:
    """Something that is sold. Without a price it is sold on request, and without a stock nobody counts it."""

    id: str
    name: str
    category: str = ""
    brand: str = ""
    description: str = ""
    price: Decimal | None = None
    currency: str = "USD"
    stock: int | None = None
    updated_at: datetime = field(default_factory=now)


@dataclass(frozen=True, slots=True)
class Window:
    """Hours of one weekday by the clock on the wall. One that closes no later than it opens ends on the next day."""

    weekday: int
    """From 0 for Monday to 6 for Sunday."""
    opens: time
    closes: time


@dataclass(frozen=True, slots=True)
class Service:
    """Something that is booked for a time."""

    id: str
    name: str
    description: str = ""
    price: Decimal | None = None
    currency: str = "USD"
    minutes: int = 60
    windows: tuple[Window, ...] = ()
    timezone: str = "UTC"
    """The zone of the windows, such as `Europe/Berlin`."""
    updated_at: datetime = field(default_factory=now)


@dataclass(frozen=True, slots=True)
class Slot:
    """A time at which a service can be booked, in the zone of the service."""

    service_id: str
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Appointment:
    """A booking of a service."""

    id: str
    service_id: str
    starts_at: datetime
    ends_at: datetime
    customer: str
    status: Status
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ProductContext:
    """A product as it was read for a question."""

    product: Product
    age_seconds: float
    """The time since it was read; what is read again within a minute may come from memory."""


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """A service as it was read for a question."""

    service: Service
    age_seconds: float


@dataclass(frozen=True, slots=True)
class ShopImport:
    """The number of products and services that a table brought."""

    products: int = 0
    services: int = 0
