"""The shop of a tenant as lines of an archive, and back again with every field checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import get_args

from ragstone.core.clock import canonical
from ragstone.core.errors import RagstoneError
from ragstone.core.ids import check_name
from ragstone.core.shop import Appointment, Product, Service, Status
from ragstone.core.shop.checks import check_customer, check_id, check_product, check_service
from ragstone.core.shop.windows import format_windows, parse_windows
from ragstone.core.types import Json
from ragstone.stores.shop.agent_settings import AgentDocument
from ragstone.stores.shop.carry import KINDS, Entry, Kind
from ragstone.transfer.archive.format import Facts, refusal
from ragstone.transfer.archive.records import pack_line

FOLDER = "shop/"
LARGEST_STOCK = 2**31 - 1


def shop_member(kind: Kind, page: int) -> str:
    """Return the name of a page of a kind."""
    return f"{FOLDER}{kind}-{page:06d}.jsonl"


def kind_of_member(name: str) -> Kind | None:
    """Return the kind whose entries a member holds; None for a member that is no page of a shop."""
    place = name.removeprefix(FOLDER).partition("-")[0] if name.startswith(FOLDER) else ""
    return next((kind for kind in KINDS if kind == place), None)


def entry_line(entry: Entry) -> bytes:
    """Return an entry as a line."""
    if isinstance(entry, AgentDocument):
        return pack_line({**entry._asdict(), "updated_at": canonical(entry.updated_at)})
    values = asdict(entry)
    if isinstance(entry, Service):
        values["windows"] = format_windows(entry.windows)
    return pack_line({name: _plain(value) for name, value in values.items()})


def read_entry(facts: Facts, kind: Kind) -> Entry:
    """Return the entry of a line."""
    try:
        return READERS[kind](facts)
    except RagstoneError as error:
        raise refusal(str(error) if facts.what in str(error) else f"{facts.what}: {error}") from error


def _plain(value: Json) -> Json:
    match value:
        case datetime():
            return canonical(value)
        case Decimal():
            return str(value)
    return value


def _read_product(facts: Facts) -> Product:
    return check_product(
        Product(
            id=check_id(facts.text("id")),
            name=facts.text("name"),
            category=facts.text("category"),
            brand=facts.text("brand"),
            description=facts.text("description"),
            price=_price(facts),
            currency=facts.text("currency"),
            stock=facts.optional_number("stock", most=LARGEST_STOCK),
            updated_at=_moment(facts, "updated_at"),
        )
    )


def _read_service(facts: Facts) -> Service:
    return check_service(
        Service(
            id=check_id(facts.text("id")),
            name=facts.text("name"),
            description=facts.text("description"),
            price=_price(facts),
            currency=facts.text("currency"),
            minutes=facts.number("minutes", most=LARGEST_STOCK),
            windows=parse_windows(facts.text("windows")),
            timezone=facts.text("timezone"),
            updated_at=_moment(facts, "updated_at"),
        )
    )


def _read_appointment(facts: Facts) -> Appointment:
    starts_at, ends_at = _moment(facts, "starts_at"), _moment(facts, "ends_at")
    if starts_at >= ends_at:
        raise refusal(f"{facts.what} ends before it begins")
    return Appointment(
        id=facts.identity("id"),
        service_id=check_id(facts.text("service_id")),
        starts_at=starts_at,
        ends_at=ends_at,
        customer=check_customer(facts.text("customer")),
        status=facts.choice("status", get_args(Status)),
        created_at=_moment(facts, "created_at"),
    )


def _read_agent(facts: Facts) -> AgentDocument:
    document = dict(facts.object("document").value)
    return AgentDocument(check_name(facts.text("agent"), "agent"), document, _moment(facts, "updated_at"))


READERS: Mapping[Kind, Callable[[Facts], Entry]] = {
    "products": _read_product,
    "services": _read_service,
    "appointments": _read_appointment,
    "agent_settings": _read_agent,
}


def _price(facts: Facts) -> Decimal | None:
    try:
        return None if facts.value.get("price") is None else Decimal(facts.text("price", most=40))
    except InvalidOperation as error:
        raise refusal(f"'price' of {facts.what} is not a number") from error


def _moment(facts: Facts, name: str) -> datetime:
    return datetime.fromisoformat(facts.moment(name))
