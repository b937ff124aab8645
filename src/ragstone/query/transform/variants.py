"""What is searched for in place of a query."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variants:
    """What is searched for in place of a query."""

    query: str
    """What was asked; passages are always reranked against this."""
    rewritten: str
    """What the result shows as `rewritten_query`."""
    dense: tuple[str, ...]
    """Texts whose vectors are searched with, the main one first."""
    lexical: tuple[str, ...]
    """Texts that are matched by word, the main one first."""
    notes: tuple[str, ...] = ()
    """What could not be done, such as "rewrite: no LLM"."""


def unchanged(query: str) -> Variants:
    """Search for exactly what was asked."""
    return Variants(query=query, rewritten=query, dense=(query,), lexical=(query,))
