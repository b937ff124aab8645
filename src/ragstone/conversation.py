"""Questions that follow each other under one name: kept with their answers, so that later ones can lean on them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from ragstone.core.activity import Turn
from ragstone.core.clock import now
from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.ledger import Ledger
from ragstone.gate import Gate
from ragstone.stores import activity_rows, turn_rows
from ragstone.stores.activity import ActivityFiles

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

    async def turns(
        self, name: str, tenant: str, kb: str, limit: int = turn_rows.MOST_OF_ONE
    ) -> tuple[Turn, ...]:
        """The last turns, oldest first; the answers of those whose documents are gone are gone, too."""
        checked_conversation(name)
        await self._gate.read(tenant)
        identity, oldest = await self._gate.identity(tenant), now() - self._kept

        def read(db: Connection) -> list[Turn]:
            return turn_rows.read_turns(db, kb, name, oldest, limit)

        found: list[Turn] = await self._files.run(identity, read, [])
        known = {one for turn in found for one in turn.document_ids}
        if not known:
            return tuple(found)
        gone = sorted(known - await self._ledger.existing(tenant, sorted(known)))
        if gone:  # a source or time took them away, and nobody told this file
            await self._files.run(identity, lambda db: activity_rows.forget_documents(db, gone), None)
            found = await self._files.run(identity, read, [])
        return tuple(found)

    async def add(
        self, name: str, tenant: str, kb: str, question: str, answer: str, document_ids: Iterable[str]
    ) -> str:
        """Keep a turn; what went wrong, if it could not be kept: whoever asked has an answer all the same."""
        ids = tuple(dict.fromkeys(document_ids))
        try:
            identity, oldest = await self._gate.identity(tenant), now() - self._kept
            if len(ids) > MOST_DOCUMENTS or set(ids) - await self._ledger.existing(tenant, ids):
                answer = ""  # it could not go with all that it was made from, or some of that is gone by now
            turn = Turn(now(), kb, name, question[:MOST_CHARS], answer[:MOST_CHARS], ids[:MOST_DOCUMENTS])
            await self._files.write(identity, lambda db: turn_rows.add_turn(db, turn, oldest))
        except RagstoneError as error:
            logger.warning("a turn of a conversation was not kept: %s", error)
            return f"conversation: this turn is not remembered: {error}"
        return ""

    async def forget(self, name: str, tenant: str, kb: str) -> int:
        """Remove a conversation; how many turns it had."""
        checked_conversation(name)
        identity = await self._gate.write(tenant)
        return await self._files.run(identity, lambda db: turn_rows.remove_turns(db, kb, name), 0)


def checked_conversation(name: str) -> str:
    """A name that a conversation can have, or `InputError`."""
    if not (name.strip() and name.isprintable() and len(name) <= MOST_NAME_CHARS):
        raise InputError(
            f"a conversation cannot be called {name!r:.60}",
            hint=f"give it a name of 1 to {MOST_NAME_CHARS} printable characters",
        )
    return name
