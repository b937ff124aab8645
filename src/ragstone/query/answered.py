"""Nothing found is a result; nothing searched is an error."""

from __future__ import annotations

from ragstone.core.errors import SearchFailed
from ragstone.core.types import SearchResult
from ragstone.query.request import Arm

BOTH: tuple[Arm, ...] = ("dense", "lexical")


def require_an_answer(arms: Arm, result: SearchResult) -> SearchResult:
    """The result, unless every arm that was asked has failed and nobody else found anything."""
    asked = BOTH if arms == "hybrid" else (arms,)
    said = dict(note.split(": ", 1) for note in result.degraded if ": " in note)
    if result.hits or result.web or result.records or not all(arm in said for arm in asked):
        return result
    other = "lexical" if arms == "dense" else "dense"
    hint = "look at the stores with: ragstone doctor"
    if arms != "hybrid":
        hint = f"{hint}; until then search with --arms {other}"
    raise SearchFailed(f"the search could not be done: {said[asked[0]]}", hint=hint)
