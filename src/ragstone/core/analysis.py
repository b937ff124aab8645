"""What a query is about, as far as that decides where it is looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import Mode

QueryType = Literal["product", "service", "general"]
SourceKind = Literal["documents", "database", "internet"]


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """What a query asks for, whom and what it names, and which sources may know."""

    type: QueryType
    entities: tuple[str, ...]
    """Names, as the tenant's own words or the query spell them."""
    dates: tuple[str, ...]
    """Days and times, as the query spells them."""
    sources: tuple[SourceKind, ...]
    """Where it is looked for at once; nowhere when nothing has to be looked for."""
    mode: Mode | None = None
    """How deep; None leaves it as it is."""
    reason: str = ""
