"""Filters as SQLite conditions. Values and JSON paths are always bound, never written into the SQL."""

from __future__ import annotations

from collections.abc import Callable

from ragstone.core.filters import Filter, Range, Scalar
from ragstone.stores.sql.filters import bounds_of, column_of, walked


def condition(where: Filter, parameters: list[Scalar], *, chunks: bool = True) -> str:
    """A condition over `documents d` and, if `chunks`, `chunks c`; appends its values to `parameters`."""
    return walked(
        where,
        lambda field, values: _one_of(field, values, parameters, chunks),
        lambda within: _range(within, parameters, chunks),
    )


def _one_of(field: str, values: tuple[Scalar, ...], parameters: list[Scalar], chunks: bool) -> str:
    if not values:
        return "(0)"
    column = column_of(field, chunks=chunks)
    if column:
        return _among(f"typeof({column})", column, _by_type(values, _sql_types), parameters)
    parameters.extend((_path(field), _path(field)))
    among = _among("j.type", "j.value", _by_type(values, _json_types), parameters)
    # A list matches when one of its items does; the members of an object are not items.
    return f"EXISTS (SELECT 1 FROM json_each(d.metadata, ?) j WHERE json_type(d.metadata, ?) <> 'object' AND {among})"


def _by_type(values: tuple[Scalar, ...], types: Callable[[Scalar], str]) -> dict[str, list[Scalar]]:
    grouped: dict[str, list[Scalar]] = {}
    for value in values:
        grouped.setdefault(types(value), []).append(value)
    return grouped


def _among(kind: str, value: str, grouped: dict[str, list[Scalar]], parameters: list[Scalar]) -> str:
    tests = []
    for types, members in grouped.items():
        parameters.extend(members)
        tests.append(f"({kind} IN {types} AND {value} IN ({', '.join('?' * len(members))}))")
    return f"({' OR '.join(tests)})"


def _range(where: Range, parameters: list[Scalar], chunks: bool) -> str:
    bounds = bounds_of(where)
    column = column_of(where.field, chunks=chunks)
    if column:
        tests = []
        for sign, bound in bounds:
            tests.append(f"typeof({column}) IN {_ordered_types(bound)} AND {column} {sign} ?")
            parameters.append(bound)
        return f"({' AND '.join(tests)})"
    path = _path(where.field)
    tests = [f"coalesce(json_type(d.metadata, ?), '') IN {_ordered_types(bounds[0][1])}"]
    parameters.append(path)
    for sign, bound in bounds:
        tests.append(f"json_extract(d.metadata, ?) {sign} ?")
        parameters.extend((path, bound))
    return f"({' AND '.join(tests)})"


def _path(field: str) -> str:
    return f'$."{field}"'


def _json_types(value: Scalar) -> str:
    return "('true', 'false')" if isinstance(value, bool) else _ordered_types(value)


def _sql_types(value: Scalar) -> str:
    return "('none')" if isinstance(value, bool) else _ordered_types(value)


def _ordered_types(value: Scalar) -> str:
    """Of what comes before or after it: true is 1 there."""
    return "('text')" if isinstance(value, str) else "('integer', 'real')"
