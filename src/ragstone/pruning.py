"""Finds what an activity file still tells of documents that are gone or have been replaced, and removes it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ragstone.core.errors import RagstoneError, TenantGone
from ragstone.core.ledger import Ledger
from ragstone.gate import Gate
from ragstone.stores.activity import ActivityFiles
from ragstone.stores.activity_rows import ToldOf, forget_gone, told_of

if TYPE_CHECKING:
    from sqlite3 import Connection

logger = logging.getLogger(__name__)
PIECE = 200


class Pruning:
    """Holds activity files against the ledger: no transaction spans both, so one may be ahead of the other."""

    def __init__(self, ledger: Ledger, files: ActivityFiles, gate: Gate) -> None:
        self._ledger = ledger
        self._files = files
        self._gate = gate

    async def prune(self, tenant: str) -> None:
        """Remove what is gone from a tenant's file; if it cannot, it is logged, not raised: the next one does it."""
        try:
            identity = await self._gate.identity(tenant)
            told = await self._files.read(identity, told_of, ToldOf(set(), set()))
            if told:
                await self.remove(identity, await self.gone(tenant, told))
        except TenantGone:
            return  # whoever deletes it takes that along
        except (RagstoneError, OSError) as error:
            logger.warning("what was asked of documents that are gone is not looked for: %s", error)

    async def gone(self, tenant: str, told: ToldOf) -> ToldOf:
        """What of it there is no more."""
        documents, chunks, kbs = sorted(told.documents), sorted(told.chunks), set()
        if told.kbs:
            kbs = {kb.name for kb in await self._ledger.kbs(tenant)}
        return ToldOf(
            told.documents - await self._ledger.existing(tenant, documents) if documents else set(),
            told.chunks - await self._ledger.live_chunks(tenant, chunks) if chunks else set(),
            told.kbs - kbs,
        )

    async def remove(self, identity: str, gone: ToldOf) -> None:
        """Remove what tells of it; if it cannot, it is logged, not raised."""

        try:
            for part in _in_parts(gone):
                await self._files.run(identity, partial(_forget, part), None)
        except (RagstoneError, OSError) as error:
            logger.warning("what was asked of documents that are gone is still kept: %s", error)


def _forget(part: ToldOf, db: Connection) -> None:
    forget_gone(db, part)


def _in_parts(gone: ToldOf) -> Iterator[ToldOf]:
    """A few at a time, so that whoever else writes gets a turn; kbs last, when their documents are forgotten."""
    for part in _pieces(gone.documents):
        yield ToldOf(part, set())
    for part in _pieces(gone.chunks):
        yield ToldOf(set(), part)
    if gone.kbs:
        yield ToldOf(set(), set(), gone.kbs)


def _pieces(ids: set[str]) -> Iterator[set[str]]:
    ordered = sorted(ids)
    for start in range(0, len(ordered), PIECE):
        yield set(ordered[start : start + PIECE])
