"""The conversations of a tenant: questions that follow each other under one name, kept with their answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from ragstone.core.activity import Conversation, Turn
from ragstone.core.clock import now
from ragstone.core.errors import InputError, RagstoneError, StoreError
from ragstone.core.types import Hit
from ragstone.engine.access import TenantScope, WorkspacePart, record_caller, within_kbs
from ragstone.query.context import checked_count
from ragstone.stores.activity.conversations import MOST_OF_ONE, ConversationRepository

logger = logging.getLogger(__name__)
REMEMBERED = 5
"""The number of earlier turns that a question is answered in the light of."""
MOST_NAME_CHARS = 200
STEPS = frozenset({".", ".."})
"""Clients take these out of an address, so a conversation of such a name could not be shown or forgotten by it."""
MOST_CHARS = 8000
MOST_DOCUMENTS = 100
WRITE_SECONDS = 2.0
"""An answer waits no longer for its turn to be kept: a long transaction may be at work on the ledger."""


@record_caller
class Conversations(WorkspacePart):
    """Conversations, for as long as searches are remembered; `kb` is that of the settings unless named."""

    @within_kbs
    async def list(self, *, limit: int = 100, kb: str | None = None) -> Sequence[Conversation]:
        """Return the conversations about a kb, the last one first."""
        checked_count("limit", limit, most=10_000)
        await self._scope.admit()
        return await self._repository.list(self._scope.kb_name(kb), self._oldest, limit)

    @within_kbs
    async def turns(self, conversation: str, *, limit: int = MOST_OF_ONE, kb: str | None = None) -> tuple[Turn, ...]:
        """Return the last turns, oldest first; an answer goes with its documents, and when one is replaced."""
        _check_name(conversation)
        await self._scope.admit()
        name = self._scope.kb_name(kb)
        return tuple(await self._repository.turns(name, conversation, self._oldest, limit))

    @within_kbs
    async def forget(self, conversation: str, *, kb: str | None = None) -> int:
        """Remove a conversation; return how many turns it had."""
        _check_name(conversation)
        if not await self._scope.components.access.write(self._scope.tenant):
            return 0
        return await self._repository.remove(self._scope.kb_name(kb), conversation)

    @property
    def _repository(self) -> ConversationRepository:
        return ConversationRepository(self._scope.components.ledger, self._scope.tenant)

    @property
    def _oldest(self) -> datetime:
        return _oldest(self._scope)


async def read_recent_turns(
    scope: TenantScope, conversation: str, kb: str | None, most: int = REMEMBERED
) -> tuple[tuple[Turn, ...], str]:
    """Return what the next turn may refer to; nothing, and what went wrong, where it cannot be read."""
    if conversation in STEPS:
        raise InputError(f"a conversation cannot be called {conversation!r}", hint="give it another name")
    try:
        return await Conversations(scope).turns(conversation, limit=most, kb=kb), ""
    except StoreError as error:
        logger.warning("cannot read a conversation: %s", error)
        return (), f"conversation: what was said before is not known: {error}"


async def add_turn(
    scope: TenantScope, conversation: str, kb: str | None, question: str, answer: str, hits: Iterable[Hit]
) -> str:
    """Keep a turn; return what went wrong if it could not be kept: the answer is given all the same."""
    read = [(hit.document_id, hit.chunk_id) for hit in hits]
    ids = tuple(dict(read))
    if len(ids) > MOST_DOCUMENTS:
        answer = ""  # it could not go with all that it was made from
    kept = ids[:MOST_DOCUMENTS]
    turn = Turn(now(), scope.kb_name(kb), conversation, question[:MOST_CHARS], answer[:MOST_CHARS], kept)
    repository = ConversationRepository(scope.components.ledger, scope.tenant)
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await repository.add(turn, [chunk for _, chunk in read], _oldest(scope))
    except (RagstoneError, TimeoutError) as error:
        reason = str(error) or "the ledger is busy"
        logger.warning("cannot keep a turn of a conversation: %s", reason)
        return f"conversation: this turn is not remembered: {reason}"
    return ""


def _oldest(scope: TenantScope) -> datetime:
    return now() - timedelta(days=scope.settings.activity.days)


def _check_name(name: str) -> None:
    if not (name.strip() and name.isprintable() and len(name) <= MOST_NAME_CHARS):
        raise InputError(
            f"a conversation cannot be called {name!r:.60}",
            hint=f"give it a name of 1 to {MOST_NAME_CHARS} printable characters",
        )
