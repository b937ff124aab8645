"""Values of a database as text, as metadata, and as a cursor that JSON can carry and a query can take back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from string import Formatter
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator

from ragstone.core.errors import SourceError
from ragstone.core.types import Json


def _plain_fields(template: str) -> str:
    for _, name, spec, conversion in Formatter().parse(template):
        if name is not None and (not name or spec or conversion or set(name) & set(".[]{}")):
            raise ValueError(f"'{{{name}}}' must be a column's name and nothing else; write '{{{{' for a brace")
    return template


Template = Annotated[str, AfterValidator(_plain_fields)]
"""Text with columns in braces: `{name}: {description}`."""


def columns_of(template: str) -> tuple[str, ...]:
    """Return the columns a template asks for, each once."""
    names = (name for _, name, _, _ in Formatter().parse(template) if name)
    return tuple(dict.fromkeys(names))


def render(template: str, row: Mapping[str, Any]) -> str:
    """Return the template with the row's values in it. Nothing of a value is read as a template."""
    return "".join(
        literal + (as_text(row[name]) if name else "") for literal, name, _, _ in Formatter().parse(template)
    )


def as_text(value: Any) -> str:
    """Return a value as people read it; nothing for NULL and for bytes, which are no text."""
    match value:
        case None | bytes() | bytearray() | memoryview():
            return ""
        case bool():
            return "true" if value else "false"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def as_metadata(value: Any) -> Json:
    """Return a value as it may stand in metadata; None for what cannot."""
    match value:
        case str() | bool() | int() | datetime() | date() | dict() | list():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return _number(value)
        case UUID() | time() | timedelta():
            return str(value)
        case _:
            return None


def _number(value: Decimal) -> Json:
    """Return a number where none of its digits is lost by that, else its digits."""
    if not value.is_finite() or abs(value.adjusted()) > 15:
        return str(value)
    near = float(value)
    return (int(near) if near.is_integer() else near) if Decimal(repr(near)) == value else str(value)


def to_cursor(value: Any, column: str) -> Json:
    """Return a cursor column's value as JSON that says its kind."""
    match value:
        case bool() | None:
            pass
        case int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Decimal() if value.is_finite():
            return {"decimal": str(value)}
    raise SourceError(
        f"the cursor column '{column}' holds {type(value).__name__}, which has no order to go on by",
        hint="choose a column that only grows, such as a number or a time of change",
    )


def from_cursor(kept: Json) -> Any:
    """Return the value that `to_cursor` was given."""
    match kept:
        case {"datetime": str() as text}:
            return datetime.fromisoformat(text)
        case {"date": str() as text}:
            return date.fromisoformat(text)
        case {"decimal": str() as text}:
            return Decimal(text)
        case _:
            return kept
