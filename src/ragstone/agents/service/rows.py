"""Rows of the shop as passages: sentences that a reply can quote, under the names that customers are told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from zoneinfo import ZoneInfo

from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.sanitize import sanitize
from ragstone.core.shop import Product, Service, Slot
from ragstone.core.types import Hit
from ragstone.language.sentences import sentence_spans

CATALOG, SERVICES, CALENDAR = "Product Catalog", "Service Catalog", "Appointment Calendar"
LONGEST_DESCRIPTION = 1000
MOST_TIMES = 6
"""Times of one day that are named."""
MOST_DAYS = 3
MOST_NAMES = 30
"""Names of products or services that are listed at once."""
SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}


def format_price(amount: Decimal, currency: str) -> str:
    """Return a price as people write it: `$42`, `€9.50`, `120 SEK`."""
    number = f"{amount:,.2f}".removesuffix(".00")
    symbol = SYMBOLS.get(currency.upper())
    return f"{symbol}{number}" if symbol else f"{number} {currency.upper()}".strip()


def product_hit(product: Product, rank: int, age: float = 0.0) -> Hit:
    """Return a product as a passage: what it costs, how many there are, and what the shop says of it."""
    name = sanitize(product.name)
    brand = f" by {sanitize(product.brand)}" if product.brand else ""
    cost = (
        f"costs {format_price(product.price, product.currency)}" if product.price is not None else "is in our catalog"
    )
    said = f"{name}{brand} {cost}{_say_stock(product.stock)}."
    text = " ".join([said, _say_description(product.description)]).strip()
    return _row_hit("product", product.id, CATALOG, f"{name} product details", text, rank, age)


def _say_stock(stock: int | None) -> str:
    if stock is None:
        return ""
    if not stock:
        return " and is out of stock"
    return ", and 1 is in stock" if stock == 1 else f", and {stock:,} are in stock"


def _say_description(description: str) -> str:
    words = sanitize(description)[:LONGEST_DESCRIPTION]
    return words if not words or words.endswith((".", "!", "?")) else f"{words}."


def service_hit(service: Service, rank: int, age: float = 0.0) -> Hit:
    """Return a service as a passage: what it costs, how long it takes, and what the shop says of it."""
    name = sanitize(service.name)
    facts = [f"costs {format_price(service.price, service.currency)}"] if service.price is not None else []
    facts += [f"takes {service.minutes} minutes"] if service.minutes else []
    said = f"{name} {' and '.join(facts) or 'is one of our services'}."
    text = " ".join([said, _say_description(service.description)]).strip()
    return _row_hit("service", service.id, SERVICES, f"{name} service details", text, rank, age)


def names_hit(kind: str, title: str, names: Sequence[str]) -> Hit:
    """Return the names of all products or services as a passage of one sentence."""
    shown = [sanitize(name) for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        shown.append("more")
    listed = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    return _row_hit(f"{kind}s", "all", title, f"all {kind}s", f"We offer {listed}.", 0, 0.0)


def slots_hit(service: Service, slots: Sequence[Slot], rank: int, days: tuple[date, date]) -> Hit:
    """Return the free times of a service on some days as a passage of one sentence."""
    name = sanitize(service.name)
    zone = ZoneInfo(service.timezone)
    starts = sorted(slot.starts_at.astimezone(zone) for slot in slots)
    by_day = [(day, list(times)) for day, times in groupby(starts, key=datetime.date)]
    told = "; ".join(_say_times(times) for _, times in by_day[:MOST_DAYS])
    text = f"{name} is free {told}." if told else f"{name} has no free time {_say_days(*days)}."
    return _row_hit("slots", service.id, CALENDAR, f"{name} free times", text, rank, 0.0)


def _say_days(first: date, last: date) -> str:
    return f"on {first:%A, %d %B %Y}" if first == last else f"from {first:%d %B} to {last:%d %B %Y}"


def _say_times(starts: Sequence[datetime]) -> str:
    times = [f"{start:%H:%M}" for start in starts[:MOST_TIMES]]
    listed = " and ".join([", ".join(times[:-1]), times[-1]] if len(times) > 1 else times)
    more = ", and later" if len(starts) > MOST_TIMES else ""
    return f"on {starts[0]:%A %d %B %Y} at {listed}{more}"


def _row_hit(kind: str, key: str, title: str, section: str, text: str, rank: int, age: float) -> Hit:
    place = f"row:{kind}:{key}"
    score = round(1 / (1 + rank), 6)
    return Hit(
        chunk_id=place,
        document_id=place,
        title=title,
        uri=f"database:{kind}/{key}",
        section=section,
        page=None,
        text=text,
        score=score,
        scores={"database": score},
        metadata={"source": "database", "record": kind, "age_seconds": round(age, 1)},
        start=0,
        end=len(text),
    )


def say_sentences(hit: Hit, most: int) -> list[Statement]:
    """Return the first sentences of a passage, each as a statement that stands on it."""
    spans = list(sentence_spans(hit.text))[:most]
    return [Statement(hit.text[start:end], "quoted", (Quote(hit, start, end),)) for start, end in spans]
