"""Questions that follow each other under one name: kept with their answers, so that later ones can lean on them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import timedelta

from ragstone.core.activity import Conversation, Turn
from ragstone.core.clock import now
from ragstone.core.errors import InputError, RagstoneError, StoreError
from ragstone.core.types import Hit
from ragstone.gate import Gate
from ragstone.stores.activity import conversations as rows
from ragstone.stores.activity.conversations import ConversationRepository
from ragstone.stores.ledger.ledger import SqlLedger

logger = logging.getLogger(__name__)
REMEMBERED = 5
"""How many turns the next one is told of."""
MOST_NAME_CHARS = 200
MOST_CHARS = 8000
MOST_DOCUMENTS = 100
WRITE_SECONDS = 2.0
"""An answer waits no longer for its turn to be kept: a long transaction may be at work on the ledger."""


class Conversations:
    """The conversations of each tenant's kbs, for as long as searches are remembered."""

    def __init__(self, ledger: SqlLedger, gate: Gate, days: int) -> None:
        self._ledger = ledger
        self._gate = gate
        self._kept = timedelta(days=days)

    async def all(self, tenant: str, kb: str, limit: int) -> list[Conversation]:
        """Return the conversations of a kb, the last one first."""
        await self._gate.read(tenant)
        return await ConversationRepository(self._ledger, tenant).list(kb, now() - self._kept, limit)

    async def turns(self, name: str, tenant: str, kb: str, limit: int = rows.MOST_OF_ONE) -> tuple[Turn, ...]:
        """Return the last turns, oldest first; an answer goes with its documents, and when one is replaced."""
        checked_conversation(name)
        await self._gate.read(tenant)
        turns = ConversationRepository(self._ledger, tenant)
        return tuple(await turns.turns(kb, name, now() - self._kept, limit))

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
        """Keep a turn, and return what went wrong if it could not be kept: the answer is given all the same."""
        read = [(hit.document_id, hit.chunk_id) for hit in hits]
        ids = tuple(dict(read))
        if len(ids) > MOST_DOCUMENTS:
            answer = ""  # it could not go with all that it was made from
        turn = Turn(now(), kb, name, question[:MOST_CHARS], answer[:MOST_CHARS], ids[:MOST_DOCUMENTS])
        turns = ConversationRepository(self._ledger, tenant)
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await turns.add(turn, [chunk for _, chunk in read], now() - self._kept)
        except (RagstoneError, TimeoutError) as error:
            reason = str(error) or "the ledger is busy"
            logger.warning("a turn of a conversation was not kept: %s", reason)
            return f"conversation: this turn is not remembered: {reason}"
        return ""

    async def forget(self, name: str, tenant: str, kb: str) -> int:
        """Remove a conversation and return how many turns it had."""
        checked_conversation(name)
        if not await self._gate.write(tenant):
            return 0
        return await ConversationRepository(self._ledger, tenant).remove(kb, name)


def checked_conversation(name: str) -> str:
    """A name that a conversation can have, or `InputError`."""
    if not (name.strip() and name.isprintable() and len(name) <= MOST_NAME_CHARS):
        raise InputError(
            f"a conversation cannot be called {name!r:.60}",
            hint=f"give it a name of 1 to {MOST_NAME_CHARS} printable characters",
        )
    return name
