"""Questions that follow each other under one name: kept with their answers, so that later ones can lean on them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from ragstone.core.activity import Conversation, Turn
from ragstone.core.clock import now
from ragstone.core.errors import InputError, RagstoneError, StoreError
from ragstone.core.ledger import Ledger
from ragstone.core.types import Hit
from ragstone.gate import Gate
from ragstone.pruning import Pruning
from ragstone.stores import turn_rows
from ragstone.stores.activity import ActivityFiles
from ragstone.stores.activity_rows import ToldOf

if TYPE_CHECKING:
    from sqlite3 import Connection

logger = logging.getLogger(__name__)
REMEMBERED = 5
"""How many turns the next one is told of."""
MOST_NAME_CHARS = 200
MOST_CHARS = 8000
MOST_DOCUMENTS = 100


class Conversations:
    """The conversations of each tenant's kbs, for as long as searches are remembered."""

    def __init__(self, ledger: Ledger, files: ActivityFiles, gate: Gate, days: int) -> None:
        self._ledger = ledger
        self._files = files
        self._gate = gate
        self._kept = timedelta(days=days)
        self._pruning = Pruning(ledger, files, gate)

    async def all(self, tenant: str, kb: str, limit: int) -> list[Conversation]:
        """The conversations that there are, the last one first."""
        await self._gate.read(tenant)
        identity, oldest = await self._gate.identity(tenant), now() - self._kept
        return await self._files.read(
            identity, lambda db: turn_rows.read_conversations(db, kb, oldest, limit), []
        )

    async def turns(
        self, name: str, tenant: str, kb: str, limit: int = turn_rows.MOST_OF_ONE
    ) -> tuple[Turn, ...]:
        """The last turns, oldest first; an answer goes with its documents, and when one of them is replaced."""
        checked_conversation(name)
        await self._gate.read(tenant)
        identity, oldest = await self._gate.identity(tenant), now() - self._kept

        def read(db: Connection) -> list[Turn]:
            return turn_rows.read_turns(db, kb, name, oldest, limit)

        found: list[Turn] = await self._files.read(identity, read, [])
        told = ToldOf(
            {one for turn in found for one in turn.document_ids},
            {one for turn in found for one in turn.chunk_ids},
        )
        gone = await self._pruning.gone(tenant, told)
        # What a source or time took away, or somebody replaced, is not told, even if it cannot be removed now.
        await self._pruning.remove(identity, gone)
        return tuple(_without(turn, gone) for turn in found)

    async def last(self, name: str, tenant: str, kb: str) -> tuple[tuple[Turn, ...], str]:
        """What the next turn is told of; none, and what went wrong, where that cannot be read."""
        try:
            return await self.turns(name, tenant, kb, REMEMBERED), ""
        except StoreError as error:
            logger.warning("a conversation could not be read: %s", error)
            return (), f"conversation: what was said before is not known: {error}"

    async def add(
        self, name: str, tenant: str, kb: str, question: str, answer: str, hits: Iterable[Hit]
    ) -> str:
        """Keep a turn; what went wrong, if it could not be kept: whoever asked has an answer all the same."""
        read = [(hit.document_id, hit.chunk_id) for hit in hits]
        passages = dict(read)  # one of each document: those that are live at once are of one version
        ids, chunks = tuple(passages)[:MOST_DOCUMENTS], tuple(passages.values())
        try:
            identity, oldest = await self._gate.identity(tenant), now() - self._kept
            if len(passages) > MOST_DOCUMENTS or await self._changed(tenant, [chunk for _, chunk in read]):
                answer = ""  # it could not go with all that it was made from, or some of that is gone by now
            chunks = chunks if answer else ()
            turn = Turn(now(), kb, name, question[:MOST_CHARS], answer[:MOST_CHARS], ids, chunks)
            await self._files.write(identity, lambda db: turn_rows.add_turn(db, turn, oldest))
        except RagstoneError as error:
            logger.warning("a turn of a conversation was not kept: %s", error)
            return f"conversation: this turn is not remembered: {error}"
        return ""

    async def _changed(self, tenant: str, chunk_ids: Sequence[str]) -> bool:
        """Whether a passage is not in a live document any more."""
        return bool(chunk_ids) and not await self._ledger.live_chunks(tenant, chunk_ids) >= set(chunk_ids)

    async def forget(self, name: str, tenant: str, kb: str) -> int:
        """Remove a conversation; how many turns it had."""
        checked_conversation(name)
        identity = await self._gate.write(tenant)
        return await self._files.run(identity, lambda db: turn_rows.remove_turns(db, kb, name), 0)


def _without(turn: Turn, gone: ToldOf) -> Turn:
    if gone.documents.isdisjoint(turn.document_ids) and gone.chunks.isdisjoint(turn.chunk_ids):
        return turn
    there = tuple(one for one in turn.document_ids if one not in gone.documents)
    return replace(turn, answer="", document_ids=there, chunk_ids=())


def checked_conversation(name: str) -> str:
    """A name that a conversation can have, or `InputError`."""
    if not (name.strip() and name.isprintable() and len(name) <= MOST_NAME_CHARS):
        raise InputError(
            f"a conversation cannot be called {name!r:.60}",
            hint=f"give it a name of 1 to {MOST_NAME_CHARS} printable characters",
        )
    return name
