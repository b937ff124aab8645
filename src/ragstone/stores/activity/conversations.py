"""The turns of a tenant's conversations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ragstone.core.activity import Conversation, Turn
from ragstone.core.clock import canonical
from ragstone.core.errors import unknown_kb
from ragstone.stores.activity.removal import remove_old_turns
from ragstone.stores.ledger.documents import live_chunks, read_kb
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.sql.database import Connection, in_parts, keep_newest, marks

MOST_TURNS = 10_000
"""Of a tenant, the newest."""
MOST_OF_ONE = 100
"""Of a conversation, the newest."""
TURNS = (
    "SELECT t.id, t.moment, t.conversation, t.question, t.answer FROM turns t JOIN knowledge_bases k "
    "ON k.tenant_id = t.tenant_id AND k.id = t.kb_id WHERE t.tenant_id = ? AND k.name = ?"
)


class ConversationRepository(TenantRepository):
    """Keeps turns with the documents they were made from; an answer goes when one of these goes or is replaced."""

    @in_transaction
    def add(
        self, connection: Connection, tenant_id: str, turn: Turn, chunk_ids: Sequence[str], oldest: datetime
    ) -> None:
        """Keep a turn, without its answer unless all of `chunk_ids` are live, and drop turns from before `oldest`."""
        kb = read_kb(connection, tenant_id, turn.kb)
        if kb is None:
            raise unknown_kb(turn.kb, self._tenant)
        wanted = set(chunk_ids) if turn.answer else set()
        current = wanted <= live_chunks(connection, tenant_id, sorted(wanted))
        put_turn(connection, tenant_id, kb.id, turn if current else replace(turn, answer=""))
        remove_old_turns(connection, tenant_id, oldest)
        connection.execute(
            "DELETE FROM turns WHERE tenant_id = ? AND id IN (SELECT id FROM turns WHERE tenant_id = ? "
            "AND kb_id = ? AND conversation = ? ORDER BY moment DESC, id DESC LIMIT ? OFFSET ?)",
            (tenant_id, tenant_id, kb.id, turn.conversation, MOST_TURNS, MOST_OF_ONE),
        )
        keep_newest(connection, tenant_id, "turns", ("id",), "moment, id", MOST_TURNS)

    @in_snapshot_or(list)
    def turns(
        self,
        connection: Connection,
        tenant_id: str,
        kb: str,
        conversation: str,
        oldest: datetime,
        limit: int = MOST_OF_ONE,
    ) -> list[Turn]:
        """Return the last turns of a conversation since `oldest`, in the order in which they were taken."""
        values = (tenant_id, kb, conversation, canonical(oldest), limit)
        newest = connection.execute(
            f"{TURNS} AND t.conversation = ? AND t.moment >= ? ORDER BY t.moment DESC, t.id DESC LIMIT ?", values
        )
        return _with_documents(connection, tenant_id, kb, newest.fetchall()[::-1])

    @in_snapshot_or(list)
    def all_turns(self, connection: Connection, tenant_id: str, kb: str) -> list[Turn]:
        """Return the turns of all conversations of a kb, in the order in which they were taken."""
        found = connection.execute(f"{TURNS} ORDER BY t.moment, t.id", (tenant_id, kb))
        return _with_documents(connection, tenant_id, kb, found.fetchall())

    @in_snapshot_or(list)
    def list(self, connection: Connection, tenant_id: str, kb: str, oldest: datetime, limit: int) -> list[Conversation]:
        """Return the conversations of a kb that went on since `oldest`, the last one first."""
        found = connection.execute(
            "SELECT t.conversation, count(*), min(t.moment), max(t.moment) FROM turns t "
            "JOIN knowledge_bases k ON k.tenant_id = t.tenant_id AND k.id = t.kb_id "
            "WHERE t.tenant_id = ? AND k.name = ? AND t.moment >= ? "
            "GROUP BY t.conversation ORDER BY max(t.moment) DESC, max(t.id) DESC LIMIT ?",
            (tenant_id, kb, canonical(oldest), limit),
        )
        return [
            Conversation(name, kb, turns, datetime.fromisoformat(began), datetime.fromisoformat(last))
            for name, turns, began, last in found
        ]

    @in_transaction
    def remove(self, connection: Connection, tenant_id: str, kb: str, conversation: str) -> int:
        """Remove a conversation and return how many turns it had."""
        return connection.execute(
            "DELETE FROM turns WHERE tenant_id = ? AND conversation = ? AND kb_id IN "
            "(SELECT id FROM knowledge_bases WHERE tenant_id = ? AND name = ?)",
            (tenant_id, conversation, tenant_id, kb),
        ).rowcount


def put_turn(connection: Connection, tenant_id: str, kb_id: int, turn: Turn) -> None:
    """Write a turn with those of its documents that are there."""
    (turn_id,) = connection.execute(
        "INSERT INTO turns (tenant_id, kb_id, conversation, moment, question, answer) "
        "VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        (tenant_id, kb_id, turn.conversation, canonical(turn.moment), turn.question, turn.answer),
    ).fetchone()
    connection.executemany(
        "INSERT INTO turn_documents (tenant_id, turn_id, document_id) SELECT ?, ?, id FROM documents "
        "WHERE tenant_id = ? AND id = ? ON CONFLICT DO NOTHING",
        [(tenant_id, turn_id, tenant_id, document_id) for document_id in turn.document_ids],
    )


def _with_documents(
    connection: Connection, tenant_id: str, kb: str, rows: Sequence[tuple[int, str, str, str, str]]
) -> list[Turn]:
    documents: dict[int, list[str]] = defaultdict(list)
    for part in in_parts([row[0] for row in rows]):
        for turn_id, document_id in connection.execute(
            "SELECT turn_id, document_id FROM turn_documents WHERE tenant_id = ? "
            f"AND turn_id IN ({marks(part)}) ORDER BY document_id",
            (tenant_id, *part),
        ):
            documents[turn_id].append(document_id)
    return [
        Turn(*(datetime.fromisoformat(moment), kb, conversation, question, answer), tuple(documents[turn_id]))
        for turn_id, moment, conversation, question, answer in rows
    ]
