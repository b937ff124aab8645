"""Collections as people name them: what a tenant has of one type of source, such as `emails_acme`.

They are names for a part of a tenant's documents, never a place: nothing is stored, opened or removed by them.
"""

from __future__ import annotations

from dataclasses import dataclass

PLURALS = {"email": "emails", "paper": "papers", "upload": "uploads"}


@dataclass(frozen=True, slots=True)
class Collection:
    """The documents of one source type."""

    name: str
    source_type: str
    documents: int
    chunks: int


def collection_name(source_type: str, tenant: str) -> str:
    """What a tenant's documents of a source type are called."""
    return f"{PLURALS.get(source_type, source_type)}_{tenant}"
