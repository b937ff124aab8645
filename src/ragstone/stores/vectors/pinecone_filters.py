"""Filters in Pinecone's metadata query language.

Of that language only `$eq`, `$in`, `$nin`, `$and` and `$or` are used, and `$in` and `$nin` only on a list of texts that
every record has: what the others mean for missing fields, lists and mixed types has changed in the past.
"""

from __future__ import annotations

from ragstone.core.filters import Filter
from ragstone.core.types import Json
from ragstone.core.vectors import Place
from ragstone.stores.vectors.terms import All, Condition, Has, Lacks, Some, condition


def metadata_filter(place: Place, where: Filter | None) -> Json:
    """What a search of this place asks of every record's metadata."""
    own = [{"tenant_id": {"$eq": place.tenant_id}}, {"space": {"$eq": place.space}}]
    return {"$and": [*own, _expression(condition(where))] if where else own}


def _expression(wanted: Condition) -> Json:
    match wanted:
        case Has(terms):
            return {"terms": {"$in": list(terms)}}
        case Lacks(terms):
            return {"terms": {"$nin": list(terms)}}
        case All(parts):
            return {"$and": [_expression(part) for part in parts]}
        case Some(parts):
            return {"$or": [_expression(part) for part in parts]}
