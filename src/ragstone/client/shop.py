"""The shop of a tenant of a service."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from ragstone.client.connection import RemotePart, path_of
from ragstone.core.shop import Appointment, Product, Service, ShopImport, Slot
from ragstone.core.shop.tables import Kind
from ragstone.schemas.schema import Schema
from ragstone.schemas.shop import AppointmentSchema, ProductSchema, ServiceSchema, ShopImportSchema, SlotSchema


class RemoteShop(RemotePart):
    """Products, services and appointments of a shop."""

    async def find_products(self, query: str, limit: int = 5) -> Sequence[Product]:
        """Return the products that a text is about, best first."""
        data = await self._connection.get("/v1/shop/products", q=query, limit=limit)
        return [ProductSchema.read_as(Product, product) for product in data["products"]]

    async def find_services(self, query: str, limit: int = 5) -> Sequence[Service]:
        """Return the services that a text is about, best first."""
        data = await self._connection.get("/v1/shop/services", q=query, limit=limit)
        return [ServiceSchema.read_as(Service, service) for service in data["services"]]

    async def product(self, product_id: str) -> Product:
        """Return a product, or raise `NotFoundError`."""
        return ProductSchema.read_as(Product, await self._connection.get(path_of("shop", "products", product_id)))

    async def service(self, service_id: str) -> Service:
        """Return a service, or raise `NotFoundError`."""
        return ServiceSchema.read_as(Service, await self._connection.get(path_of("shop", "services", service_id)))

    async def list_products(self, *, after: str = "", limit: int = 100) -> Sequence[Product]:
        """Return a page of products in order of id, starting behind `after`."""
        data = await self._connection.get("/v1/shop/products", after=after, limit=limit)
        return [ProductSchema.read_as(Product, product) for product in data["products"]]

    async def list_services(self, *, after: str = "", limit: int = 100) -> Sequence[Service]:
        """Return a page of services in order of id, starting behind `after`."""
        data = await self._connection.get("/v1/shop/services", after=after, limit=limit)
        return [ServiceSchema.read_as(Service, service) for service in data["services"]]

    async def put_product(self, product: Product) -> Product:
        """Create a product, or replace the one with its id; without an id it gets one."""
        data = await self._put("products", product.id, ProductSchema.of(product))
        return ProductSchema.read_as(Product, data)

    async def put_service(self, service: Service) -> Service:
        """Create a service, or replace the one with its id; without an id it gets one."""
        data = await self._put("services", service.id, ServiceSchema.of(service))
        return ServiceSchema.read_as(Service, data)

    async def remove_product(self, product_id: str) -> None:
        """Remove a product, or raise `NotFoundError`."""
        await self._connection.delete(path_of("shop", "products", product_id))

    async def remove_service(self, service_id: str) -> None:
        """Remove a service with its past appointments; refused while it has future bookings."""
        await self._connection.delete(path_of("shop", "services", service_id))

    async def import_table(self, content: bytes, *, kind: Kind | None = None) -> ShopImport:
        """Write the products or services of a CSV table in UTF-8, all or none; return how many there were of each."""
        form = {} if kind is None else {"kind": kind}
        data = await self._connection.upload("/v1/shop/import", "table.csv", io.BytesIO(content), form)
        return ShopImportSchema.read_as(ShopImport, data)

    async def free_slots(self, service_id: str, first: date, last: date) -> Sequence[Slot]:
        """Return the times at which a service can be booked now, from one day to another, both included."""
        place = path_of("shop", "services", service_id, "slots")
        data = await self._connection.get(place, first=first.isoformat(), last=last.isoformat())
        return [SlotSchema.read_as(Slot, slot) for slot in data["slots"]]

    async def book(self, service_id: str, starts_at: datetime, customer: str) -> Appointment:
        """Book a free slot; `SlotTaken` when it is taken. A time without a zone is one of the service's own zone."""
        body = {"service_id": service_id, "starts_at": starts_at.isoformat(), "customer": customer}
        return AppointmentSchema.read_as(Appointment, await self._connection.post("/v1/shop/appointments", body))

    async def cancel(self, appointment_id: str) -> Appointment:
        """Cancel an appointment, which gives its slot back; one that is cancelled already stays so."""
        data = await self._connection.post(path_of("shop", "appointments", appointment_id, "cancel"))
        return AppointmentSchema.read_as(Appointment, data)

    async def appointment(self, appointment_id: str) -> Appointment:
        """Return an appointment, or raise `NotFoundError`."""
        data = await self._connection.get(path_of("shop", "appointments", appointment_id))
        return AppointmentSchema.read_as(Appointment, data)

    async def appointments(
        self, *, service_id: str | None = None, first: date | None = None, last: date | None = None, limit: int = 100
    ) -> Sequence[Appointment]:
        """Return appointments in order of time: of a service or of all, and only those of some days (of UTC)."""
        days = {"first": first and first.isoformat(), "last": last and last.isoformat()}
        data = await self._connection.get("/v1/shop/appointments", service_id=service_id, limit=limit, **days)
        return [AppointmentSchema.read_as(Appointment, one) for one in data["appointments"]]

    async def _put(self, kind: str, entry_id: str, shape: Schema) -> Any:
        body = {name: value for name, value in shape.as_json().items() if name not in ("id", "updated_at")}
        if entry_id:
            return await self._connection.put(path_of("shop", kind, entry_id), body)
        return await self._connection.post(path_of("shop", kind), body)
