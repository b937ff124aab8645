"""The shop of a tenant and the runs of its agents as lines of an archive, and back again with every field checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import get_args

from pydantic import ValidationError

from ragstone.core.agents.articles import GraphName, RunStatus
from ragstone.core.clock import canonical
from ragstone.core.errors import RagstoneError
from ragstone.core.ids import check_name
from ragstone.core.shop import Appointment, Product, Service, Status
from ragstone.core.shop.checks import check_customer, check_id, check_product, check_service
from ragstone.core.shop.windows import format_windows, parse_windows
from ragstone.core.types import Json
from ragstone.schemas.agents.articles import ArticleSchema
from ragstone.stores.activity.article_runs import RunSnapshot
from ragstone.stores.shop.agent_settings import AgentDocument
from ragstone.stores.shop.carry import KINDS, Entry, Kind
from ragstone.transfer.archive.format import Facts, refusal
from ragstone.transfer.archive.records import pack_line

FOLDERS: Mapping[Kind, str] = {kind: "articles/" if kind == "article_runs" else "shop/" for kind in KINDS}
MOST_TOPIC, MOST_ERROR = 100_000, 10_000
LARGEST_STOCK = 2**31 - 1


def shop_member(kind: Kind, page: int) -> str:
    """Return the name of a page of a kind."""
    return f"{FOLDERS[kind]}{kind}-{page:06d}.jsonl"


def kind_of_member(name: str) -> Kind | None:
    """Return the kind whose entries a member holds; None for a member that is no such page."""
    return next((kind for kind, folder in FOLDERS.items() if name.startswith(f"{folder}{kind}-")), None)


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


def _read_run(facts: Facts) -> RunSnapshot:
    status = facts.choice("status", get_args(RunStatus))
    article = _optional_object(facts, "article")
    if (status == "completed") != (article is not None):
        raise refusal(f"{facts.what} is {status} and has {'an' if article else 'no'} article")
    return RunSnapshot(
        id=facts.identity("id"),
        kb=check_name(facts.text("kb"), "kb"),
        graph=facts.choice("graph", get_args(GraphName)),
        topic=facts.text("topic", most=MOST_TOPIC),
        status=status,
        error=facts.text("error", most=MOST_ERROR),
        created_at=facts.moment("created_at"),
        updated_at=facts.moment("updated_at"),
        checkpoint=_optional_object(facts, "checkpoint"),
        article=article and _check_article(article, facts),
    )


def _optional_object(facts: Facts, name: str) -> Json:
    return None if facts.value.get(name) is None else dict(facts.object(name).value)


def _check_article(article: Json, facts: Facts) -> Json:
    try:
        return ArticleSchema.model_validate(article, strict=True).as_json()
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise refusal(f"'article' of {facts.what} cannot be read: {place:.80}") from error


READERS: Mapping[Kind, Callable[[Facts], Entry]] = {
    "products": _read_product,
    "services": _read_service,
    "appointments": _read_appointment,
    "agent_settings": _read_agent,
    "article_runs": _read_run,
}


def _price(facts: Facts) -> Decimal | None:
    try:
        return None if facts.value.get("price") is None else Decimal(facts.text("price", most=40))
    except InvalidOperation as error:
        raise refusal(f"'price' of {facts.what} is not a number") from error


def _moment(facts: Facts, name: str) -> datetime:
    return datetime.fromisoformat(facts.moment(name))
