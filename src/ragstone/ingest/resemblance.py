"""Near duplicates: a document that is nearly another one says so, or is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ragstone.core.protocols import Ledger
from ragstone.core.types import KnowledgeBase
from ragstone.ingest.enrich.near_duplicates import NEAR, similarity
from ragstone.ingest.prepare import Prepared

NEAR_DUPLICATE = "near_duplicate"
"""Why a document was left out."""


class Twin(NamedTuple):
    """The live document that another one resembles most."""

    document_id: str
    similarity: float


async def twin(ledger: Ledger, tenant: str, kb: KnowledgeBase, document: Prepared) -> Twin | None:
    """Which live document this one is nearly equal to. Documents of the same wave do not see each other."""
    if not document.bands:
        return None
    found = await ledger.resembling(tenant, kb, document.bands, document.task.document_id)
    best = max(
        (Twin(identity, similarity(document.signature, other)) for identity, other in found.items()),
        key=lambda one: (one.similarity, one.document_id),
        default=None,
    )
    return best if best and best.similarity >= NEAR else None


def marked(document: Prepared, other: Twin) -> Prepared:
    """The document with a note of which one it resembles."""
    note = {"near_duplicate_of": other.document_id, "near_duplicate_similarity": round(other.similarity, 2)}
    return replace(document, metadata={**document.metadata, **note})
