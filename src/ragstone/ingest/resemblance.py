"""Near duplicates: a document that is nearly another one says so, or is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ragstone.core.jobs import NEAR_DUPLICATE
from ragstone.core.ledger import Ledger
from ragstone.core.types import Failure, KnowledgeBase
from ragstone.ingest.enrich.near_duplicates import NEAR, similarity
from ragstone.ingest.prepare import Prepared

REMEMBERED = 50_000
"""Documents of one run that are compared before they are live."""


class Twin(NamedTuple):
    """The live document that another one resembles most."""

    document_id: str
    similarity: float


class Resemblances:
    """Finds near duplicates among what is live and what came earlier in the same run."""

    def __init__(self, ledger: Ledger, tenant: str, kb: KnowledgeBase | None) -> None:
        """Without a kb only with what came earlier."""
        self._ledger = ledger
        self._tenant = tenant
        self._kb = kb
        self._run: dict[int, dict[str, bytes]] = {}
        self._count = 0

    async def live(self, wave: Sequence[Prepared]) -> Mapping[str, Mapping[str, bytes]]:
        """For each document of a wave the signatures of live ones that may resemble it, by document id."""
        bands = {document.task.document_id: document.bands for document in wave if document.bands}
        return await self._ledger.resembling(self._tenant, self._kb, bands) if bands and self._kb else {}

    def twin(self, document: Prepared, live: Mapping[str, bytes]) -> Twin | None:
        """Which other document this one is nearly equal to: a live one, or an earlier one of the run."""
        own = document.task.document_id
        found = dict(live)
        for band in document.bands:
            found.update(self._run.get(band, {}))
        found.pop(own, None)
        best = max(
            (Twin(identity, similarity(document.signature, other)) for identity, other in found.items()),
            key=lambda one: (one.similarity, one.document_id),
            default=None,
        )
        return best if best and best.similarity >= NEAR else None

    def remember(self, document: Prepared) -> None:
        """It is on its way: what comes after it may resemble it."""
        if self._count < REMEMBERED:
            self._count += 1
            for band in document.bands:
                self._run.setdefault(band, {})[document.task.document_id] = document.signature


def marked(document: Prepared, other: Twin) -> Prepared:
    """The document with a note of which one it resembles."""
    note = {"near_duplicate_of": other.document_id, "near_duplicate_similarity": round(other.similarity, 2)}
    return replace(document, metadata={**document.metadata, **note})


def left_out(uri: str, other: str) -> Failure:
    """Why a document is not there; `twin_of` reads the other one's id from it."""
    return Failure(uri, NEAR_DUPLICATE, f"{uri} is nearly the same as document {other}")


def twin_of(error: str) -> str:
    """The id of the document that another one was left out for."""
    return error.rpartition(" ")[2]
