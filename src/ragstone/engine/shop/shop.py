"""Products, services and appointments of a tenant: found, changed, booked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, NoReturn

from ragstone.core.clock import now
from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.remedies import Action, Remedy
from ragstone.core.shop import Appointment, Product, ProductContext, Service, ServiceContext, ShopImport, Slot
from ragstone.core.shop.checks import check_customer, check_product, check_service, is_id
from ragstone.core.shop.slots import keep_free, list_slots, slot_at, zone_of
from ragstone.core.shop.tables import Kind, kind_of, read_products, read_services
from ragstone.engine.access import WorkspacePart, record_caller
from ragstone.query.context import checked_count, checked_query
from ragstone.stores.shop.appointments import AppointmentRepository, slot_taken
from ragstone.stores.shop.entries import ProductRepository, ServiceRepository

if TYPE_CHECKING:
    from ragstone.engine.shop.lookups import LookupCache
    from ragstone.ingest.sources.database.shop import MappedEntries, ShopDatabase

MOST_FOUND = 100
MOST_LISTED = 1000
MOST_AT_ONCE = 10_000
"""Products or services that are written together."""
LISTING = {"product": Action.LIST_PRODUCTS, "service": Action.LIST_SERVICES, "appointment": Action.LIST_APPOINTMENTS}
USUAL_DAYS = 7
"""Days that availability is looked for when none are named."""


@record_caller
class TenantShop(WorkspacePart):
    """The shop of a tenant. Only lookups for a question come from memory, and those say how old they are."""

    async def find_products(self, query: str, limit: int = 5) -> Sequence[Product]:
        """Return the products that a text is about, best first."""
        asked = self._check_search(query, limit)
        await self._scope.admit()
        return await self._product_source.find(asked, limit)

    async def find_services(self, query: str, limit: int = 5) -> Sequence[Service]:
        """Return the services that a text is about, best first."""
        asked = self._check_search(query, limit)
        await self._scope.admit()
        return await self._service_source.find(asked, limit)

    async def get_product_context(self, query: str, max_results: int = 5) -> Sequence[ProductContext]:
        """Return the products that a question is about with their age: they were read within the last minute."""

        async def read() -> Sequence[Product]:
            return await self.find_products(query, max_results)

        found, age = await self._lookups.read(self._scope.tenant, ("products", query, str(max_results)), read)
        return [ProductContext(product, age) for product in found]

    async def get_service_context(self, query: str, max_results: int = 5) -> Sequence[ServiceContext]:
        """Return the services that a question is about with their age: they were read within the last minute."""

        async def read() -> Sequence[Service]:
            return await self.find_services(query, max_results)

        found, age = await self._lookups.read(self._scope.tenant, ("services", query, str(max_results)), read)
        return [ServiceContext(service, age) for service in found]

    async def get_appointment_availability(
        self, service_id: str | None = None, date_range: tuple[date, date] | None = None
    ) -> Sequence[Slot]:
        """Return free slots of a service, or of all: on some days, or from today for a week. Never from memory."""
        services = [await self.service(service_id)] if service_id else await self.list_services()
        found: list[Slot] = []
        for service in services:
            today = now().astimezone(zone_of(service.timezone)).date()
            first, last = date_range or (today, today + timedelta(days=USUAL_DAYS - 1))
            found += await self._free_slots(service, first, last)
        return sorted(found, key=lambda slot: slot.starts_at.astimezone(UTC))

    async def product(self, product_id: str) -> Product:
        """Return a product, or raise `NotFoundError`."""
        await self._scope.admit()
        found = await self._product_source.get(product_id) if is_id(product_id) else None
        return found or await self._deny("product", "read", product_id)

    async def service(self, service_id: str) -> Service:
        """Return a service, or raise `NotFoundError`."""
        await self._scope.admit()
        found = await self._service_source.get(service_id) if is_id(service_id) else None
        return found or await self._deny("service", "read", service_id)

    async def list_products(self, *, after: str = "", limit: int = 100) -> Sequence[Product]:
        """Return a page of products in order of id, starting behind `after`."""
        checked_count("limit", limit, most=MOST_LISTED)
        await self._scope.admit()
        return await self._product_source.list(_as_place(after), limit)

    async def list_services(self, *, after: str = "", limit: int = 100) -> Sequence[Service]:
        """Return a page of services in order of id, starting behind `after`."""
        checked_count("limit", limit, most=MOST_LISTED)
        await self._scope.admit()
        return await self._service_source.list(_as_place(after), limit)

    async def put_product(self, product: Product) -> Product:
        """Create a product, or replace the one with its id; without an id it gets one."""
        return (await self.put_products([product]))[0]

    async def put_products(self, products: Sequence[Product]) -> Sequence[Product]:
        """Write products over those with their ids, all or none; those without an id get one."""
        self._refuse_mapped("products")
        checked_count("the number of products", len(products), most=MOST_AT_ONCE)
        moment = now().replace(microsecond=0)
        made = await asyncio.to_thread(lambda: [check_product(replace(one, updated_at=moment)) for one in products])
        _refuse_repeated([product.id for product in made])
        tenant = await self._make_tenant()
        await self._products.put(made)
        self._lookups.forget(tenant)
        target = made[0].id if len(made) == 1 else ""
        await self._components.audit.record_change(tenant, "product.put", target, count=len(made))
        return made

    async def remove_product(self, product_id: str) -> None:
        """Remove a product, or raise `NotFoundError`."""
        self._refuse_mapped("products")
        tenant = await self._scope.write()
        if not (is_id(product_id) and await self._products.remove(product_id)):
            await self._deny("product", "delete", product_id)
        self._lookups.forget(tenant)
        await self._components.audit.record_change(tenant, "product.delete", product_id)

    async def put_service(self, service: Service) -> Service:
        """Create a service, or replace the one with its id; without an id it gets one."""
        return (await self.put_services([service]))[0]

    async def put_services(self, services: Sequence[Service]) -> Sequence[Service]:
        """Write services over those with their ids, all or none; those without an id get one."""
        self._refuse_mapped("services")
        checked_count("the number of services", len(services), most=MOST_AT_ONCE)
        moment = now().replace(microsecond=0)
        made = await asyncio.to_thread(lambda: [check_service(replace(one, updated_at=moment)) for one in services])
        _refuse_repeated([service.id for service in made])
        tenant = await self._make_tenant()
        await self._services.put(made)
        self._lookups.forget(tenant)
        target = made[0].id if len(made) == 1 else ""
        await self._components.audit.record_change(tenant, "service.put", target, count=len(made))
        return made

    async def remove_service(self, service_id: str) -> None:
        """Remove a service with its past appointments; refused while it has future bookings."""
        self._refuse_mapped("services")
        tenant = await self._scope.write()
        if not (is_id(service_id) and await self._services.remove(service_id, now())):
            await self._deny("service", "delete", service_id)
        self._lookups.forget(tenant)
        await self._components.audit.record_change(tenant, "service.delete", service_id)

    async def import_table(self, content: bytes, *, kind: Kind | None = None) -> ShopImport:
        """Write the products or services of a CSV table in UTF-8, all or none; return how many there were of each."""
        text = await asyncio.to_thread(_decode_table, content)
        if (kind or kind_of(text)) == "services":
            return ShopImport(services=len(await self.put_services(await asyncio.to_thread(read_services, text))))
        return ShopImport(products=len(await self.put_products(await asyncio.to_thread(read_products, text))))

    async def free_slots(self, service_id: str, first: date, last: date) -> Sequence[Slot]:
        """Return the times at which a service can be booked now, from one day to another, both included."""
        return await self._free_slots(await self.service(service_id), first, last)

    async def book(self, service_id: str, starts_at: datetime, customer: str) -> Appointment:
        """Book a free slot; `SlotTaken` when it is taken. A time without a zone is one of the service's own zone."""
        self._refuse_mapped("appointments")
        name = check_customer(customer)
        tenant = await self._scope.write()
        service = await self.service(service_id)
        start = starts_at if starts_at.tzinfo else starts_at.replace(tzinfo=zone_of(service.timezone))
        slot = slot_at(service, start)
        if slot is None or start <= now():
            raise InputError(
                f"{starts_at.isoformat(sep=' ', timespec='minutes')} is not a time at which '{service.name}' can begin",
                hint="choose one of its free slots",
            )
        # Most callers that come too late need not wait for the current writer.
        if await self._appointments.taken(service.id, slot.starts_at, slot.ends_at):
            raise slot_taken(slot)
        made = await self._appointments.book(slot, name, of_ledger=not self._is_mapped("services"))
        await self._components.audit.record_change(tenant, "appointment.book", made.id)
        return made

    async def cancel(self, appointment_id: str) -> Appointment:
        """Cancel an appointment, which gives its slot back; one that is cancelled already stays so."""
        tenant = await self._scope.write()
        cancelled = await self._appointments.cancel(appointment_id) if is_id(appointment_id) else None
        if cancelled is None:
            await self._deny("appointment", "cancel", appointment_id)
        await self._components.audit.record_change(tenant, "appointment.cancel", appointment_id)
        return cancelled

    async def appointment(self, appointment_id: str) -> Appointment:
        """Return an appointment, or raise `NotFoundError`."""
        await self._scope.admit()
        found = await self._appointments.get(appointment_id) if is_id(appointment_id) else None
        return found or await self._deny("appointment", "read", appointment_id)

    async def appointments(
        self, *, service_id: str | None = None, first: date | None = None, last: date | None = None, limit: int = 100
    ) -> Sequence[Appointment]:
        """Return appointments in order of time: of a service or of all, and only those of some days (of UTC)."""
        checked_count("limit", limit, most=MOST_LISTED)
        await self._scope.admit()
        if service_id is not None and not is_id(service_id):
            return []
        start = datetime.combine(first, time(), UTC) if first else None
        end = datetime.combine(last, time.max, UTC) if last else None
        return await self._appointments.list(service_id, start, end, limit)

    async def _free_slots(self, service: Service, first: date, last: date) -> Sequence[Slot]:
        slots = await asyncio.to_thread(list_slots, service, first, last)
        if not slots:
            return []
        source = self._database if self._database and self._is_mapped("appointments") else self._appointments
        taken = await source.taken(service.id, slots[0].starts_at, slots[-1].ends_at)
        return await asyncio.to_thread(keep_free, slots, taken, now())

    async def _make_tenant(self) -> str:
        """Return the tenant's name; the first thing that is written for a tenant makes it."""
        tenant = self._scope.tenant
        if not await self._components.access.write(tenant):
            await self._ledger.blobs(tenant, make=True)
        return tenant

    async def _deny(self, kind: str, action: str, identity: str) -> NoReturn:
        await self._components.audit.record_denial(self._scope.tenant, f"{kind}.{action}", identity)
        raise NotFoundError(f"no {kind} {identity!r:.80}", remedy=Remedy(LISTING[kind]))

    def _check_search(self, query: str, limit: int) -> str:
        checked_count("limit", limit, most=MOST_FOUND)
        return checked_query(query, self._scope.settings.limits.query_chars)

    @property
    def _lookups(self) -> LookupCache:
        return self._components.shop_lookups

    def _is_mapped(self, kind: str) -> bool:
        """Return whether products, services or appointments are read from the tenant's own database."""
        mapping = self._scope.settings.shops.get(self._scope.tenant)
        return mapping is not None and getattr(mapping, kind) is not None

    def _refuse_mapped(self, kind: str) -> None:
        if self._is_mapped(kind):
            raise InputError(f"the {kind} of this shop are in a database of its own", hint="change them there")

    @property
    def _database(self) -> ShopDatabase | None:
        return self._components.shop_databases.get(self._scope.tenant)

    @property
    def _product_source(self) -> ProductRepository | MappedEntries[Product]:
        return self._database.products if self._database and self._is_mapped("products") else self._products

    @property
    def _service_source(self) -> ServiceRepository | MappedEntries[Service]:
        return self._database.services if self._database and self._is_mapped("services") else self._services

    @property
    def _products(self) -> ProductRepository:
        return ProductRepository(self._ledger, self._scope.tenant)

    @property
    def _services(self) -> ServiceRepository:
        return ServiceRepository(self._ledger, self._scope.tenant)

    @property
    def _appointments(self) -> AppointmentRepository:
        return AppointmentRepository(self._ledger, self._scope.tenant)


def _as_place(after: str) -> str:
    """Return a place in the order of ids: one that no database can be asked for stands before all."""
    return after if is_id(after) else ""


def _decode_table(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        row = content[: error.start].count(b"\n") + 1
        raise InputError(f"the table is not UTF-8 in line {row}", hint="save it as CSV in UTF-8") from error


def _refuse_repeated(ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for identity in ids:
        if identity in seen:
            raise InputError(f"the id {identity!r} is there twice", hint="give each entry an id of its own")
        seen.add(identity)
