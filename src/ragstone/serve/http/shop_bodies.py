"""The bodies of requests to the shop."""

from __future__ import annotations

from datetime import datetime, time
from decimal import Decimal

from pydantic import Field

from ragstone.core.shop import Product, Service, Window
from ragstone.core.shop.checks import MOST_DESCRIPTION, MOST_LABEL, MOST_NAME
from ragstone.serve.http.requests import RequestBody

PRICE = "A number, or text such as `19.99`; null means on request."


class ProductBody(RequestBody):
    """A product."""

    name: str = Field(min_length=1, max_length=MOST_NAME)
    category: str = Field(default="", max_length=MOST_LABEL)
    brand: str = Field(default="", max_length=MOST_LABEL)
    description: str = Field(default="", max_length=MOST_DESCRIPTION)
    price: Decimal | None = Field(default=None, ge=0, max_digits=16, decimal_places=4, description=PRICE)
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    stock: int | None = Field(default=None, ge=0, lt=2**31, description="Null means that nobody counts it.")

    def as_product(self, product_id: str) -> Product:
        """Return the product under an id."""
        return Product(product_id, **self.model_dump(exclude={"id"}))


class NewProductBody(ProductBody):
    """A product to be added."""

    id: str = Field(default="", max_length=64, description="It gets one by default.")


class WindowBody(RequestBody):
    """Opening hours of a weekday."""

    weekday: int = Field(ge=0, le=6, description="0 is Monday.")
    opens: time = Field(description="Such as `09:00`.")
    closes: time = Field(description="No later than it opens means on the next day.")


class ServiceBody(RequestBody):
    """A service."""

    name: str = Field(min_length=1, max_length=MOST_NAME)
    description: str = Field(default="", max_length=MOST_DESCRIPTION)
    price: Decimal | None = Field(default=None, ge=0, max_digits=16, decimal_places=4, description=PRICE)
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    minutes: int = Field(default=60, ge=5, le=1440)
    windows: list[WindowBody] = Field(default_factory=list, max_length=100)
    timezone: str = Field(default="UTC", max_length=64, description="Such as `Europe/Berlin`.")

    def as_service(self, service_id: str) -> Service:
        """Return the service under an id."""
        windows = tuple(Window(**window.model_dump()) for window in self.windows)
        return Service(service_id, **self.model_dump(exclude={"id", "windows"}), windows=windows)


class NewServiceBody(ServiceBody):
    """A service to be added."""

    id: str = Field(default="", max_length=64, description="It gets one by default.")


class BookingBody(RequestBody):
    """A slot to be booked."""

    service_id: str
    starts_at: datetime = Field(description="Without an offset it is a time of the service's own zone.")
    customer: str = Field(min_length=1, max_length=200)
