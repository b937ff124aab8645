"""Checks of products, services and bookings: everything that a shop keeps passes here first."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from ragstone.core.errors import InputError
from ragstone.core.ids import opaque_id
from ragstone.core.shop import Product, Service
from ragstone.core.shop.slots import zone_of
from ragstone.core.shop.windows import check_windows

ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
CURRENCY = re.compile(r"[A-Z]{3}")
MOST_NAME, MOST_LABEL, MOST_DESCRIPTION, MOST_CUSTOMER = 255, 100, 10_000, 200
MOST_PRICE = Decimal(10**12)
MOST_STOCK = 2**31 - 1
LEAST_MINUTES, MOST_MINUTES = 5, 24 * 60
PLACES = 4
"""Digits of a price behind the point."""


def check_product(product: Product) -> Product:
    """Return a product that can be kept, with an id; `InputError` says what is wrong with another."""
    stock = product.stock
    if stock is not None and not 0 <= stock <= MOST_STOCK:
        raise InputError(f"a stock of {stock} cannot be", hint=f"give a whole number from 0 to {MOST_STOCK}, or none")
    return replace(
        product,
        id=check_id(product.id or opaque_id()),
        name=_check_text("name", product.name, MOST_NAME, needed=True),
        category=_check_text("category", product.category, MOST_LABEL),
        brand=_check_text("brand", product.brand, MOST_LABEL),
        description=_check_text("description", product.description, MOST_DESCRIPTION),
        price=check_price(product.price),
        currency=check_currency(product.currency),
    )


def check_service(service: Service) -> Service:
    """Return a service that can be kept, with an id; `InputError` says what is wrong with another."""
    if not LEAST_MINUTES <= service.minutes <= MOST_MINUTES:
        raise InputError(f"a service of {service.minutes} minutes cannot be", hint=f"give {LEAST_MINUTES} or more")
    zone_of(service.timezone)
    return replace(
        service,
        id=check_id(service.id or opaque_id()),
        name=_check_text("name", service.name, MOST_NAME, needed=True),
        description=_check_text("description", service.description, MOST_DESCRIPTION),
        price=check_price(service.price),
        currency=check_currency(service.currency),
        windows=check_windows(service.windows),
    )


def check_customer(customer: str) -> str:
    """Return who an appointment is for, as it can be kept."""
    return _check_text("customer", customer, MOST_CUSTOMER, needed=True)


def is_id(text: str) -> bool:
    """Return whether something may have this id: a database need not be asked for others."""
    return ID.fullmatch(text) is not None


def check_id(text: str) -> str:
    """Return an id, or raise `InputError`."""
    if not is_id(text):
        raise InputError(f"{text!r:.80} cannot be an id", hint="use 1 to 64 letters, digits, '.', '_' and '-'")
    return text


def check_price(price: Decimal | None) -> Decimal | None:
    """Return a price as it is kept; None for one on request."""
    if price is None:
        return None
    try:
        kept = price.quantize(Decimal(1).scaleb(-PLACES)) if price.is_finite() else None
    except InvalidOperation:
        kept = None
    if kept is None or kept != price or not 0 <= kept < MOST_PRICE:
        raise InputError(f"{price} cannot be a price", hint="such as 42 or 19.99")
    return _shorten(kept)


def check_currency(currency: str) -> str:
    """Return the code of a currency, or raise `InputError`."""
    if not CURRENCY.fullmatch(currency):
        raise InputError(f"{currency!r:.40} is no currency", hint="give its three letters, such as USD or EUR")
    return currency


def _shorten(price: Decimal) -> Decimal:
    """Return a price with two digits behind the point, or as many more as it needs."""
    places = max(2, -int(price.normalize().as_tuple().exponent))
    return price.quantize(Decimal(1).scaleb(-places))


def _check_text(what: str, text: str, most: int, *, needed: bool = False) -> str:
    kept = text.strip()
    if needed and not kept:
        raise InputError(f"the {what} is empty")
    if len(kept) > most:
        raise InputError(f"the {what} has {len(kept):,} characters; at most {most:,} fit")
    try:
        kept.encode()
    except UnicodeEncodeError:
        raise InputError(f"the {what} is not valid Unicode") from None
    if "\0" in kept:
        raise InputError(f"the {what} holds a NUL character")
    return kept
