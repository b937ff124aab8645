"""Products and services as CSV tables, read with every error named by its row."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Literal, TypeVar

from ragstone.core.errors import InputError
from ragstone.core.registry import nearest
from ragstone.core.shop import Product, Service
from ragstone.core.shop.checks import check_product, check_service
from ragstone.core.shop.windows import parse_windows

T = TypeVar("T", Product, Service)
Kind = Literal["products", "services"]
Row = Mapping[str, str]
COLUMNS: Mapping[Kind, tuple[str, ...]] = {
    "products": ("id", "name", "category", "brand", "description", "price", "currency", "stock"),
    "services": ("id", "name", "description", "price", "currency", "minutes", "windows", "timezone"),
}
ONLY_SERVICES = frozenset(("minutes", "windows", "timezone"))
MOST_ROWS = 10_000
MOST_NAMED = 20
"""Wrong rows that are named."""
DELIMITERS = ",;\t"


def kind_of(text: str) -> Kind:
    """Return whether a table is one of products or of services, by its columns."""
    return "services" if ONLY_SERVICES & set(_read_header(text)) else "products"


def read_products(text: str) -> list[Product]:
    """Return the products of a table; `InputError` names all rows that are wrong, and nothing is returned then."""
    return _read(text, "products", _read_product)


def read_services(text: str) -> list[Service]:
    """Return the services of a table; `InputError` names all rows that are wrong, and nothing is returned then."""
    return _read(text, "services", _read_service)


def _read(text: str, kind: Kind, read: Callable[[Row], T]) -> list[T]:
    found: list[T] = []
    wrong: list[str] = []
    seen: dict[str, int] = {}
    for number, row in _rows(text, kind):
        try:
            entry = read(row)
        except InputError as error:
            wrong.append(f"row {number}: {error}")
            continue
        if first := seen.get(entry.id):
            wrong.append(f"row {number}: the id {entry.id!r} is that of row {first}")
        seen[entry.id] = number
        found.append(entry)
    if wrong:
        more = f"; and {len(wrong) - MOST_NAMED} more rows" if len(wrong) > MOST_NAMED else ""
        raise InputError("; ".join(wrong[:MOST_NAMED]) + more, hint="correct these rows: nothing was imported")
    return found


def _rows(text: str, kind: Kind) -> Iterator[tuple[int, Row]]:
    """Yield rows with their numbers as a spreadsheet shows them: the header is row 1."""
    header = _read_header(text)
    known = COLUMNS[kind]
    for name in header:
        if name not in known:
            raise InputError(
                f"row 1: {kind} have no column {name!r:.60}", hint=nearest(name, known) or f"use: {', '.join(known)}"
            )
    if "name" not in header or len(set(header)) != len(header):
        raise InputError("row 1 must have the column 'name', and no column twice", hint=f"use: {', '.join(known)}")
    number = 1
    try:
        for number, cells in enumerate(_open(text), start=1):
            if number == 1 or not any(cell.strip() for cell in cells):
                continue
            if number > MOST_ROWS + 1:
                raise InputError(f"the table has more than {MOST_ROWS:,} rows", hint="import it in parts")
            if len(cells) != len(header):
                raise InputError(f"row {number} has {len(cells)} cells instead of {len(header)}")
            yield number, {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    except csv.Error as error:
        raise InputError(f"row {number + 1} cannot be read: {error}") from error


def _read_header(text: str) -> list[str]:
    try:
        return [cell.strip().casefold() for cell in next(_open(text), [])]
    except csv.Error as error:
        raise InputError(f"row 1 cannot be read: {error}") from error


def _open(text: str) -> Iterator[list[str]]:
    first = text.lstrip("\ufeff").partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    return csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter, strict=True)


def _read_product(row: Row) -> Product:
    return check_product(
        Product(
            id=row.get("id", ""),
            name=row["name"],
            category=row.get("category", ""),
            brand=row.get("brand", ""),
            description=row.get("description", ""),
            price=_read_price(row),
            currency=(row.get("currency") or "USD").upper(),
            stock=_read_number("stock", row["stock"]) if row.get("stock") else None,
        )
    )


def _read_service(row: Row) -> Service:
    return check_service(
        Service(
            id=row.get("id", ""),
            name=row["name"],
            description=row.get("description", ""),
            price=_read_price(row),
            currency=(row.get("currency") or "USD").upper(),
            minutes=_read_number("minutes", row.get("minutes") or "60"),
            windows=parse_windows(row.get("windows", "")),
            timezone=row.get("timezone") or "UTC",
        )
    )


def _read_price(row: Row) -> Decimal | None:
    written = row.get("price", "")
    try:
        return Decimal(written) if written else None
    except InvalidOperation:
        raise InputError(f"the price {written!r:.40} is not a number", hint="such as 42 or 19.99") from None


def _read_number(what: str, written: str) -> int:
    if not (written.isascii() and written.isdigit() and len(written) <= 10):
        raise InputError(f"the {what} {written!r:.40} is not a whole number")
    return int(written)
