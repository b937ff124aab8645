"""`ragstone shop`: what a tenant sells, what can be booked, and who has booked it."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import moment, one_line, pluralize, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from rich.console import Console

    from ragstone.core.shop import Appointment, Product, Service, Slot

Query = Annotated[str | None, typer.Argument(metavar="[WORDS]", help="Only what a text is about, best first.")]
Most = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most N.")]
After = Annotated[str, typer.Option("--after", metavar="ID", help="Only those behind this id.")]
ProductId = Annotated[str, typer.Argument(metavar="PRODUCT_ID", help="Id of the product.")]
ServiceId = Annotated[str, typer.Argument(metavar="SERVICE_ID", help="Id of the service.")]
AppointmentId = Annotated[str, typer.Argument(metavar="APPOINTMENT_ID", help="Id of the appointment.")]
Id = Annotated[str, typer.Option("--id", help="Id to write it under; one is made by default.")]
Price = Annotated[str | None, typer.Option("--price", help="Such as 19.99; on request by default.")]
Currency = Annotated[str, typer.Option("--currency", help="Three letters.")]
Description = Annotated[str, typer.Option("--description", help="What there is to say about it.")]
First = Annotated[str | None, typer.Option("--from", metavar="DATE", help="First day, such as 2026-06-01.")]
Last = Annotated[str | None, typer.Option("--to", metavar="DATE", help="Last day.")]
FIND_MOST = 100


async def list_products(session: CliSession, query: Query = None, limit: Most = 100, after: After = "") -> int:
    """List products, or find some by words."""
    from ragstone.schemas.shop import ProductListSchema

    async with session.workspace() as workspace:
        if query is not None:
            found = await workspace.shop.find_products(query, min(limit, FIND_MOST))
        else:
            found = await workspace.shop.list_products(after=after, limit=limit)
    following = found[-1].id if query is None and len(found) == limit else None
    session.show(ProductListSchema.of(products=found, next=following), lambda out: _draw_products(out, found))
    return OK if found else NOTHING_FOUND


async def list_services(session: CliSession, query: Query = None, limit: Most = 100, after: After = "") -> int:
    """List services, or find some by words."""
    from ragstone.schemas.shop import ServiceListSchema

    async with session.workspace() as workspace:
        if query is not None:
            found = await workspace.shop.find_services(query, min(limit, FIND_MOST))
        else:
            found = await workspace.shop.list_services(after=after, limit=limit)
    following = found[-1].id if query is None and len(found) == limit else None
    session.show(ServiceListSchema.of(services=found, next=following), lambda out: _draw_services(out, found))
    return OK if found else NOTHING_FOUND


async def show_product(session: CliSession, product_id: ProductId) -> None:
    """Show a product."""
    from ragstone.schemas.shop import ProductSchema

    async with session.workspace() as workspace:
        found = await workspace.shop.product(product_id)
    session.show(ProductSchema.of(found), lambda out: _draw_entry(out, found, _stock(found)))


async def show_service(session: CliSession, service_id: ServiceId) -> None:
    """Show a service with its opening hours."""
    from ragstone.core.shop.windows import format_windows
    from ragstone.schemas.shop import ServiceSchema

    async with session.workspace() as workspace:
        found = await workspace.shop.service(service_id)
    hours = f"{found.minutes} minutes; {format_windows(found.windows) or 'never open'} ({found.timezone})"
    session.show(ServiceSchema.of(found), lambda out: _draw_entry(out, found, hours))


async def put_product(
    session: CliSession,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the product.")],
    product_id: Id = "",
    category: Annotated[str, typer.Option("--category")] = "",
    brand: Annotated[str, typer.Option("--brand")] = "",
    description: Description = "",
    price: Price = None,
    currency: Currency = "USD",
    stock: Annotated[int | None, typer.Option("--stock", min=0, help="Not counted by default.")] = None,
) -> None:
    """Write a product, over the one with its id if there is one."""
    from ragstone.core.shop import Product
    from ragstone.schemas.shop import ProductSchema

    wanted = Product(product_id, name, category, brand, description, _read_price(price), currency, stock)
    async with session.workspace(create=True) as workspace:
        made = await workspace.shop.put_product(wanted)
    session.show(ProductSchema.of(made), lambda out: out.print(text(f"Product {made.id} is written.")))


async def put_service(
    session: CliSession,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the service.")],
    service_id: Id = "",
    description: Description = "",
    price: Price = None,
    currency: Currency = "USD",
    minutes: Annotated[int, typer.Option("--minutes", help="Length of a slot.")] = 60,
    hours: Annotated[
        str,
        typer.Option("--hours", metavar="HOURS", help="Such as 'mon-fri 09:00-12:00, 13:00-17:00; sat 10:00-14:00'."),
    ] = "",
    timezone: Annotated[str, typer.Option("--timezone", help="Zone of the hours, such as Europe/Berlin.")] = "UTC",
) -> None:
    """Write a service, over the one with its id if there is one."""
    from ragstone.core.shop import Service
    from ragstone.core.shop.windows import parse_windows
    from ragstone.schemas.shop import ServiceSchema

    cost = _read_price(price)
    wanted = Service(service_id, name, description, cost, currency, minutes, parse_windows(hours), timezone)
    async with session.workspace(create=True) as workspace:
        made = await workspace.shop.put_service(wanted)
    session.show(ServiceSchema.of(made), lambda out: out.print(text(f"Service {made.id} is written.")))


async def remove_entry(
    session: CliSession,
    kind: Annotated[Literal["product", "service"], typer.Argument(metavar="product|service")],
    entry_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the product or service.")],
) -> None:
    """Remove a product or a service.

    A service that is booked for a time to come stays.
    """
    from ragstone.schemas.shop import RemovedEntrySchema

    async with session.workspace() as workspace:
        if kind == "product":
            await workspace.shop.remove_product(entry_id)
        else:
            await workspace.shop.remove_service(entry_id)
    shape = RemovedEntrySchema.of(removed=entry_id)
    session.show(shape, lambda out: out.print(text(f"Removed {kind} {entry_id}.")))


async def import_table(
    session: CliSession,
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="A table in UTF-8 with a header.")],
    kind: Annotated[
        Literal["products", "services"] | None, typer.Option("--kind", help="By default, as its columns say.")
    ] = None,
) -> None:
    """Import products or services, all rows or none.

    An error names the rows that are wrong.
    """
    from ragstone.schemas.shop import ShopImportSchema

    settings = session.settings()
    most = settings.limits.file_mb * 1024 * 1024
    if file.stat().st_size > most:
        raise InputError(f"{file} is larger than limits.file_mb allows")
    async with session.workspace(settings, create=True) as workspace:
        done = await workspace.shop.import_table(file.read_bytes(), kind=kind)
    said = f"Imported {pluralize(done.products, 'product')} and {pluralize(done.services, 'service')}."
    session.show(ShopImportSchema.of(done), lambda out: out.print(said))


async def list_slots(session: CliSession, service_id: ServiceId, first: First = None, last: Last = None) -> int:
    """List the times at which a service can be booked.

    Lists today and the six days after it unless days are named.
    """
    from ragstone.schemas.shop import SlotListSchema

    days = _read_days(first, last)
    async with session.workspace() as workspace:
        found = await workspace.shop.get_appointment_availability(service_id, days)
    session.show(SlotListSchema.of(slots=found), lambda out: _draw_slots(out, found))
    return OK if found else NOTHING_FOUND


async def book_slot(
    session: CliSession,
    service_id: ServiceId,
    start: Annotated[str, typer.Argument(metavar="TIME", help="Beginning of a free slot, such as 2026-06-01T09:00.")],
    customer: Annotated[str, typer.Option("--customer", help="Who it is for.")],
) -> None:
    """Book a free slot. A time without an offset is one of the service's own zone."""
    from ragstone.schemas.shop import AppointmentSchema

    try:
        starts_at = datetime.fromisoformat(start)
    except ValueError as error:
        raise InputError(f"{start!r:.40} is not a time", hint="such as 2026-06-01T09:00") from error
    async with session.workspace() as workspace:
        made = await workspace.shop.book(service_id, starts_at, customer)
    said = f"Booked {made.starts_at:%Y-%m-%d %H:%M} for {one_line(made.customer)}: appointment {made.id}."
    session.show(AppointmentSchema.of(made), lambda out: out.print(text(said)))


async def list_appointments(
    session: CliSession,
    service_id: Annotated[str | None, typer.Option("--service", metavar="SERVICE_ID", help="Only of this one.")] = None,
    first: First = None,
    last: Last = None,
    limit: Most = 100,
) -> int:
    """List appointments in order of time."""
    from ragstone.schemas.shop import AppointmentListSchema

    async with session.workspace() as workspace:
        found = await workspace.shop.appointments(
            service_id=service_id, first=_read_day(first), last=_read_day(last), limit=limit
        )
    session.show(AppointmentListSchema.of(appointments=found), lambda out: _draw_appointments(out, found))
    return OK if found else NOTHING_FOUND


async def cancel_appointment(session: CliSession, appointment_id: AppointmentId) -> None:
    """Cancel an appointment, which gives its slot back."""
    from ragstone.schemas.shop import AppointmentSchema

    async with session.workspace() as workspace:
        cancelled = await workspace.shop.cancel(appointment_id)
    said = f"Appointment {cancelled.id} is cancelled."
    session.show(AppointmentSchema.of(cancelled), lambda out: out.print(text(said)))


def _read_price(written: str | None) -> Decimal | None:
    from decimal import Decimal, InvalidOperation

    try:
        return None if written is None else Decimal(written)
    except InvalidOperation as error:
        raise InputError(f"{written!r:.40} is not a price", hint="such as 19.99") from error


def _read_day(written: str | None) -> date | None:
    if written is None:
        return None
    try:
        return date.fromisoformat(written)
    except ValueError as error:
        raise InputError(f"{written!r:.40} is not a day", hint="such as 2026-06-01") from error


def _read_days(first: str | None, last: str | None) -> tuple[date, date] | None:
    begin, end = _read_day(first), _read_day(last)
    if begin is None and end is None:
        return None
    if begin is None or end is None:
        raise InputError("one of the days is missing", hint="give --from and --to")
    return begin, end


def _cost(entry: Product | Service) -> str:
    return "on request" if entry.price is None else f"{entry.price} {entry.currency}"


def _stock(product: Product) -> str:
    return "not counted" if product.stock is None else f"{product.stock:,} in stock"


def _draw_products(out: Console, products: Sequence[Product]) -> None:
    if not products:
        out.print("No products.")
        return
    rows = table("id", "name", "category", "brand", "price", "stock", right=("price", "stock"))
    for product in products:
        stock = "–" if product.stock is None else f"{product.stock:,}"
        names = (text(one_line(word)) for word in (product.name, product.category, product.brand))
        rows.add_row(product.id, *names, _cost(product), stock)
    out.print(rows)


def _draw_services(out: Console, services: Sequence[Service]) -> None:
    from ragstone.core.shop.windows import format_windows

    if not services:
        out.print("No services.")
        return
    rows = table("id", "name", "minutes", "price", "hours", "timezone", right=("minutes", "price"))
    for service in services:
        hours = format_windows(service.windows) or "never"
        rows.add_row(
            service.id, text(one_line(service.name)), str(service.minutes), _cost(service), hours, service.timezone
        )
    out.print(rows)


def _draw_entry(out: Console, entry: Product | Service, more: str) -> None:
    out.print(text(one_line(entry.name), "bold"))
    out.print(text(f"{_cost(entry)}; {more}"))
    if entry.description:
        out.print(text(entry.description))


def _draw_slots(out: Console, slots: Sequence[Slot]) -> None:
    if not slots:
        out.print("No free slots on these days.")
    for slot in slots:
        out.print(f"{slot.starts_at:%a %Y-%m-%d %H:%M}–{slot.ends_at:%H:%M} {slot.starts_at:%Z}")


def _draw_appointments(out: Console, appointments: Sequence[Appointment]) -> None:
    if not appointments:
        out.print("No appointments.")
        return
    rows = table("id", "service", "start", "customer", "status")
    for one in appointments:
        rows.add_row(one.id, one.service_id, moment(one.starts_at), text(one_line(one.customer)), one.status)
    out.print(rows)
