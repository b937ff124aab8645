"""Where a Space's vectors live in a provider."""

from __future__ import annotations

from ragstone.core.types import Space
from ragstone.core.vectors import Place
from ragstone.stores.ledger.index_feed import Mark


def place_of(tenant_id: str, space: Space) -> Place:
    """Of a Space."""
    return _place(tenant_id, space.id, space.dimension)


def place_of_mark(tenant_id: str, mark: Mark) -> Place:
    """Of a Space that may be gone itself."""
    return _place(tenant_id, mark.space_id, mark.dimension)


def _place(tenant_id: str, space_id: int, dimension: int) -> Place:
    return Place(tenant_id, f"s{space_id}", dimension)
