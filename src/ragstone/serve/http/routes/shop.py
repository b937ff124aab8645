"""The shop of a tenant: products, services, free slots and appointments."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, Query, UploadFile
from pydantic import Field
from starlette.responses import Response

from ragstone.core.shop import Product, Service, Window
from ragstone.core.shop.checks import MOST_DESCRIPTION, MOST_LABEL, MOST_NAME
from ragstone.schemas.shop import (
    AppointmentListSchema,
    AppointmentSchema,
    ProductListSchema,
    ProductSchema,
    RemovedEntrySchema,
    ServiceListSchema,
    ServiceSchema,
    ShopImportSchema,
    SlotListSchema,
)
from ragstone.serve.http.identity import KeyedRoute, Reader, Writer
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import Limit, RequestBody, exact_form

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


router = APIRouter(route_class=KeyedRoute, prefix="/v1/shop", tags=["shop"], responses=PROBLEMS)
After = Annotated[str, Query(description="`next` of the page before.", max_length=64)]
Words = Annotated[str | None, Query(description="Only those that match these words, best first.", min_length=1)]
Day = Annotated[date | None, Query(description="A day such as 2026-06-01.")]


@router.get("/products", response_model=ProductListSchema)
async def list_products(workspace: Reader, q: Words = None, after: After = "", limit: Limit = 100) -> Response:
    """List products in order of id, a page at a time, or find some by words."""
    if q is not None:
        found = await workspace.shop.find_products(q, min(limit, 100))
        return reply(ProductListSchema.of(products=found, next=None))
    page = await workspace.shop.list_products(after=after, limit=limit)
    return reply(ProductListSchema.of(products=page, next=page[-1].id if len(page) == limit else None))


@router.post("/products", status_code=201, response_model=ProductSchema)
async def add_product(body: NewProductBody, workspace: Writer) -> Response:
    """Add a product, or replace the one with its id; without an id it gets one."""
    made = await workspace.shop.put_product(body.as_product(body.id))
    return reply(ProductSchema.of(made), 201, {"Location": f"/v1/shop/products/{made.id}"})


@router.get("/products/{product_id}", response_model=ProductSchema)
async def show_product(product_id: str, workspace: Reader) -> Response:
    """Show a product."""
    return reply(ProductSchema.of(await workspace.shop.product(product_id)))


@router.put("/products/{product_id}", response_model=ProductSchema)
async def replace_product(product_id: str, body: ProductBody, workspace: Writer) -> Response:
    """Write a product under its id, whether or not there is one."""
    return reply(ProductSchema.of(await workspace.shop.put_product(body.as_product(product_id))))


@router.delete("/products/{product_id}", response_model=RemovedEntrySchema)
async def remove_product(product_id: str, workspace: Writer) -> Response:
    """Remove a product."""
    await workspace.shop.remove_product(product_id)
    return reply(RemovedEntrySchema.of(removed=product_id))


@router.get("/services", response_model=ServiceListSchema)
async def list_services(workspace: Reader, q: Words = None, after: After = "", limit: Limit = 100) -> Response:
    """List services in order of id, a page at a time, or find some by words."""
    if q is not None:
        found = await workspace.shop.find_services(q, min(limit, 100))
        return reply(ServiceListSchema.of(services=found, next=None))
    page = await workspace.shop.list_services(after=after, limit=limit)
    return reply(ServiceListSchema.of(services=page, next=page[-1].id if len(page) == limit else None))


@router.post("/services", status_code=201, response_model=ServiceSchema)
async def add_service(body: NewServiceBody, workspace: Writer) -> Response:
    """Add a service, or replace the one with its id; without an id it gets one."""
    made = await workspace.shop.put_service(body.as_service(body.id))
    return reply(ServiceSchema.of(made), 201, {"Location": f"/v1/shop/services/{made.id}"})


@router.get("/services/{service_id}", response_model=ServiceSchema)
async def show_service(service_id: str, workspace: Reader) -> Response:
    """Show a service with its opening hours."""
    return reply(ServiceSchema.of(await workspace.shop.service(service_id)))


@router.put("/services/{service_id}", response_model=ServiceSchema)
async def replace_service(service_id: str, body: ServiceBody, workspace: Writer) -> Response:
    """Write a service under its id, whether or not there is one."""
    return reply(ServiceSchema.of(await workspace.shop.put_service(body.as_service(service_id))))


@router.delete("/services/{service_id}", response_model=RemovedEntrySchema)
async def remove_service(service_id: str, workspace: Writer) -> Response:
    """Remove a service; refused while it has future bookings."""
    await workspace.shop.remove_service(service_id)
    return reply(RemovedEntrySchema.of(removed=service_id))


@router.get("/services/{service_id}/slots", response_model=SlotListSchema)
async def list_slots(service_id: str, first: date, last: date, workspace: Reader) -> Response:
    """List the times at which a service can be booked now, from one day to another, both included."""
    return reply(SlotListSchema.of(slots=await workspace.shop.free_slots(service_id, first, last)))


@router.get("/appointments", response_model=AppointmentListSchema)
async def list_appointments(
    workspace: Writer, service_id: str | None = None, first: Day = None, last: Day = None, limit: Limit = 100
) -> Response:
    """List appointments in order of time. They name customers, so this needs a key that may write."""
    found = await workspace.shop.appointments(service_id=service_id, first=first, last=last, limit=limit)
    return reply(AppointmentListSchema.of(appointments=found))


@router.post("/appointments", status_code=201, response_model=AppointmentSchema)
async def book(body: BookingBody, workspace: Writer) -> Response:
    """Book a free slot; 409 when somebody else was faster."""
    made = await workspace.shop.book(body.service_id, body.starts_at, body.customer)
    return reply(AppointmentSchema.of(made), 201, {"Location": f"/v1/shop/appointments/{made.id}"})


@router.get("/appointments/{appointment_id}", response_model=AppointmentSchema)
async def show_appointment(appointment_id: str, workspace: Writer) -> Response:
    """Show an appointment."""
    return reply(AppointmentSchema.of(await workspace.shop.appointment(appointment_id)))


@router.post("/appointments/{appointment_id}/cancel", response_model=AppointmentSchema)
async def cancel(appointment_id: str, workspace: Writer) -> Response:
    """Cancel an appointment, which gives its slot back."""
    return reply(AppointmentSchema.of(await workspace.shop.cancel(appointment_id)))


@router.post("/import", response_model=ShopImportSchema, dependencies=[exact_form()])
async def import_table(
    workspace: Writer,
    file: Annotated[UploadFile, File(description="A CSV table in UTF-8 with a header.")],
    kind: Annotated[
        Literal["products", "services"] | None, Form(description="By default, recognized by the columns.")
    ] = None,
) -> Response:
    """Import products or services, all rows or none; an error names the rows that are wrong."""
    return reply(ShopImportSchema.of(await workspace.shop.import_table(await file.read(), kind=kind)))
