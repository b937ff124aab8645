"""What filters have in common in every SQL: how their terms are joined, and which fields are columns."""

from __future__ import annotations

from collections.abc import Callable

from ragstone.core.filters import And, Equals, Filter, In, Not, Or, Range, Scalar

COLUMNS = {
    "document_id": "d.id",
    "external_id": "d.external_id",
    "uri": "d.uri",
    "title": "d.title",
    "source": "d.source",
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


def walked(where: Filter, one_of: OneOf, within: Within) -> str:
    """The condition of a whole filter, from those of its terms, in their order."""
    match where:
        case And(terms):
            return "(" + " AND ".join(walked(term, one_of, within) for term in terms) + ")"
        case Or(terms):
            return "(" + " OR ".join(walked(term, one_of, within) for term in terms) + ")"
        case Not(term):
            return f"NOT {walked(term, one_of, within)}"
        case Equals(field, value):
            return one_of(field, (value,))
        case In(field, values):
            return one_of(field, values)
        case Range():
            return within(where)


def bounds_of(where: Range) -> list[tuple[str, Scalar]]:
    """The signs of a range with what they compare to."""
    bounds = [(sign, getattr(where, name)) for name, sign in COMPARISONS.items()]
    return [(sign, bound) for sign, bound in bounds if bound is not None]


def column_of(field: str, *, chunks: bool) -> str | None:
    """The column that holds a field, None when it is in the metadata; without chunks theirs are metadata too."""
    column = COLUMNS.get(field)
    return None if column and column.startswith("c.") and not chunks else column
