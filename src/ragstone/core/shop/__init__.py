"""The catalogue of a shop: what it sells, what can be booked there and when, and the seam to wherever this is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Literal, Protocol

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


ProductListener = Callable[[str, Sequence[Product]], Awaitable[None]]
"""Hears which products of a tenant were changed or removed, each as it was before."""


class Shop(Protocol):
    """The shop of one tenant. An id that the tenant does not have is `NotFoundError`, whoever else may have it."""

    async def find_products(self, query: str, limit: int = 5) -> Sequence[Product]:
        """Return the products that a text is about, best first."""
        ...

    async def find_services(self, query: str, limit: int = 5) -> Sequence[Service]:
        """Return the services that a text is about, best first."""
        ...

    async def product(self, product_id: str) -> Product:
        """Return a product."""
        ...

    async def service(self, service_id: str) -> Service:
        """Return a service."""
        ...

    async def list_products(self, *, after: str = "", limit: int = 100) -> Sequence[Product]:
        """Return a page of products in order of id, starting behind `after`."""
        ...

    async def list_services(self, *, after: str = "", limit: int = 100) -> Sequence[Service]:
        """Return a page of services in order of id, starting behind `after`."""
        ...

    async def put_product(self, product: Product) -> Product:
        """Write a product over the one with its id; without an id it gets one."""
        ...

    async def put_service(self, service: Service) -> Service:
        """Write a service over the one with its id; without an id it gets one."""
        ...

    async def remove_product(self, product_id: str) -> None:
        """Remove a product."""
        ...

    async def remove_service(self, service_id: str) -> None:
        """Remove a service; refused while somebody has it booked for a time to come."""
        ...

    async def free_slots(self, service_id: str, first: date, last: date) -> Sequence[Slot]:
        """Return the times at which a service can be booked now, from one day to another, both included."""
        ...

    async def book(self, service_id: str, starts_at: datetime, customer: str) -> Appointment:
        """Book a free slot; `SlotTaken` when somebody else was faster."""
        ...

    async def cancel(self, appointment_id: str) -> Appointment:
        """Cancel an appointment, which gives its slot back."""
        ...
