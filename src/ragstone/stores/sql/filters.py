"""Filters as SQL conditions: parts that every database shares, and those of SQLite.

Values and JSON paths are always bound, never written into the SQL.
"""

from __future__ import annotations

from collections.abc import Callable

from ragstone.core.documents import PATH_TYPES
from ragstone.core.filters import And, Equals, Filter, In, Not, Or, Range, Scalar

COLUMNS = {
    "document_id": "d.id",
    "external_id": "d.external_id",
    "uri": "d.uri",
    "title": "d.title",
    "connector": "d.source",
    "media_type": "d.media_type",
    "modified_at": "d.modified_at",
    "created_at": "d.created_at",
    "updated_at": "d.updated_at",
    "page": "c.page",
    "level": "c.level",
    "kind": "c.kind",
}
COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
OneOf = Callable[[str, tuple[Scalar, ...]], str]
"""The condition that a field has one of some values."""
Within = Callable[[Range], str]


def join_terms(where: Filter, one_of: OneOf, within: Within) -> str:
    """Return the condition of a whole filter, from those of its terms, in their order."""
    match where:
        case And(terms):
            return "(" + " AND ".join(join_terms(term, one_of, within) for term in terms) + ")"
        case Or(terms):
            return "(" + " OR ".join(join_terms(term, one_of, within) for term in terms) + ")"
        case Not(term):
            return f"NOT {join_terms(term, one_of, within)}"
        case Equals(field, value):
            return one_of(field, (value,))
        case In(field, values):
            return one_of(field, values)
        case Range():
            return within(where)


def bounds_of(where: Range) -> list[tuple[str, Scalar]]:
    """Return the signs of a range with the values they compare to."""
    bounds = [(sign, getattr(where, name)) for name, sign in COMPARISONS.items()]
    return [(sign, bound) for sign, bound in bounds if bound is not None]


def origin_column(text: Callable[[str], str]) -> str:
    """Return `core.documents.origin_of` as an expression; `text` gives the one of a text in the metadata, or NULL."""
    source, source_type, domain = map(text, ("source", "source_type", "domain"))
    paths = ", ".join(f"'{path_type}'" for path_type in PATH_TYPES)
    return (
        f"(CASE WHEN {source} NOT IN ('', d.source) THEN {source} WHEN {source_type} IN ({paths}) THEN d.uri "
        f"WHEN {source_type} = 'web' AND {domain} <> '' THEN {domain} ELSE d.source END)"
    )


ORIGIN = origin_column(
    lambda name: f"(CASE json_type(d.metadata, '$.{name}') WHEN 'text' THEN json_extract(d.metadata, '$.{name}') END)"
)


def column_of(field: str, *, chunks: bool, origin: str = ORIGIN) -> str | None:
    """Return the column that holds a field, None when it is in the metadata; without chunks theirs are metadata too."""
    column = origin if field == "source" else COLUMNS.get(field)
    return None if column and column.startswith("c.") and not chunks else column


def condition(where: Filter, parameters: list[Scalar], *, chunks: bool = True) -> str:
    """Return a condition over `documents d` and, if `chunks`, `chunks c`; appends its values to `parameters`."""
    return join_terms(
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
    """Return the SQL types that are ordered with a value: true is 1 there."""
    return "('text')" if isinstance(value, str) else "('integer', 'real')"
