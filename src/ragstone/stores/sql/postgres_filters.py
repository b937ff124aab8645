"""Filters as PostgreSQL conditions. Values and keys are always bound, never written into the SQL.

No condition is ever NULL, so that NOT means what it says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ragstone.core.filters import Filter, Range, Scalar
from ragstone.stores.sql.filters import bounds_of, column_of, join_terms, origin_column

NUMBERS = ("c.page", "c.level")
"""Columns that hold numbers; the others hold text."""
ORIGIN = origin_column(
    lambda name: f"(CASE jsonb_typeof(d.metadata -> '{name}') WHEN 'string' THEN d.metadata ->> '{name}' END)"
)


def condition(where: Filter, parameters: list[Any], *, chunks: bool = True) -> str:
    """Return a condition over `documents d` and, if `chunks`, `chunks c`; appends its values to `parameters`."""
    return join_terms(
        where,
        lambda field, values: _one_of(field, values, parameters, chunks),
        lambda within: _range(within, parameters, chunks),
    )


def _one_of(field: str, values: tuple[Scalar, ...], parameters: list[Any], chunks: bool) -> str:
    column = column_of(field, chunks=chunks, origin=ORIGIN)
    if column is None:
        # A list contains its items, and a single value itself; an object contains neither.
        parameters.extend((field, [_as_json(value) for value in values]))
        return "coalesce((d.metadata -> ?::text) @> ANY (?::jsonb[]), FALSE)"
    if column in NUMBERS:
        parameters.append([exact(value) for value in values if not isinstance(value, str | bool)])
        return f"({column} IS NOT NULL AND {column} = ANY (?::numeric[]))"
    parameters.append([value for value in values if isinstance(value, str)])
    return f"({column} IS NOT NULL AND {column} = ANY (?::text[]))"


def _range(where: Range, parameters: list[Any], chunks: bool) -> str:
    bounds = bounds_of(where)
    is_text = isinstance(bounds[0][1], str)
    column = column_of(where.field, chunks=chunks, origin=ORIGIN)
    if column is None:
        kind, value = ("string", "->> ?::text") if is_text else ("number", "-> ?::text")
        # CASE, since the parts of an AND may be looked at in any order, and other kinds are no numbers.
        parameters.append(where.field)
        tests = _compare(f"(d.metadata {value})", bounds, parameters, [where.field])
        return f"(CASE jsonb_typeof(d.metadata -> ?::text) WHEN '{kind}' THEN {tests} ELSE FALSE END)"
    if (column in NUMBERS) is is_text:
        return "(FALSE)"
    return f"({column} IS NOT NULL AND {_compare(column, bounds, parameters, [])})"


def _compare(value: str, bounds: Sequence[tuple[str, Scalar]], parameters: list[Any], keys: Sequence[str]) -> str:
    tests = []
    for sign, bound in bounds:
        parameters.extend((*keys, bound if isinstance(bound, str) else exact(bound)))
        if isinstance(bound, str):
            tests.append(f'{value} COLLATE "C" {sign} ?::text')
        else:
            tests.append(f"{value}::numeric {sign} ?::numeric")
    return " AND ".join(tests)


def exact(value: float) -> Decimal:
    """Return a number as its decimal digits, which is how JSONB keeps it: equal and in order exactly as in Python."""
    return Decimal(value) if isinstance(value, int) or abs(value) >= 1e16 else Decimal(repr(value))


def _as_json(value: Scalar) -> str:
    if isinstance(value, str):
        return json.dumps(value.replace("\x00", "\ufffd"), ensure_ascii=False)
    return json.dumps(value) if isinstance(value, bool) else str(exact(value))
