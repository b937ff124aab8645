"""SQL of conversations in the activity file."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from datetime import datetime
from itertools import zip_longest

from ragstone.core.activity import Conversation, Turn
from ragstone.core.clock import canonical
from ragstone.stores.activity_rows import keep_newest

MOST_TURNS = 10_000
"""Of a tenant, the newest."""
MOST_OF_ONE = 100
"""Of a conversation, the newest."""


def add_turn(db: sqlite3.Connection, turn: Turn, oldest: datetime) -> None:
    """Keep a turn, and forget those of before `oldest` and beyond the newest."""
    cursor = db.execute(
        "INSERT INTO turns (moment, kb, conversation, question, answer) VALUES (?, ?, ?, ?, ?)",
        (canonical(turn.moment), turn.kb, turn.conversation, turn.question, turn.answer),
    )
    read = zip_longest(turn.document_ids, turn.chunk_ids, fillvalue="")
    db.executemany(
        "INSERT OR IGNORE INTO turn_documents (turn_id, document_id, chunk_id) VALUES (?, ?, ?)",
        [(cursor.lastrowid, *one) for one in read],
    )
    db.execute("DELETE FROM turns WHERE moment < ?", (canonical(oldest),))
    db.execute(
        "DELETE FROM turns WHERE kb = ? AND conversation = ? AND id <= (SELECT id FROM turns "
        "WHERE kb = ? AND conversation = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (turn.kb, turn.conversation, turn.kb, turn.conversation, MOST_OF_ONE),
    )
    keep_newest(db, "turns", ("id",), "id", MOST_TURNS)


def read_turns(
    db: sqlite3.Connection, kb: str, conversation: str, oldest: datetime, limit: int = MOST_OF_ONE
) -> list[Turn]:
    """The last turns of a conversation since `oldest`, in the order in which they were taken."""
    chosen = (
        "SELECT id, moment, question, answer FROM turns WHERE kb = ? AND conversation = ? AND moment >= ? "
        "ORDER BY id DESC LIMIT ?"
    )
    values = (kb, conversation, canonical(oldest), limit)
    documents: dict[int, list[str]] = defaultdict(list)
    chunks: dict[int, list[str]] = defaultdict(list)
    for turn_id, document_id, chunk_id in db.execute(
        f"SELECT d.turn_id, d.document_id, d.chunk_id FROM ({chosen}) t JOIN turn_documents d ON d.turn_id = t.id "
        "ORDER BY d.document_id",
        values,
    ):
        documents[turn_id].append(document_id)
        if chunk_id:
            chunks[turn_id].append(chunk_id)
    return [
        Turn(
            *(datetime.fromisoformat(moment), kb, conversation, question, answer),
            *(tuple(documents[turn_id]), tuple(chunks[turn_id])),
        )
        for turn_id, moment, question, answer in reversed(db.execute(chosen, values).fetchall())
    ]


def read_conversations(db: sqlite3.Connection, kb: str, oldest: datetime, limit: int) -> list[Conversation]:
    """The conversations of a kb that were gone on with since `oldest`, the last one first."""
    found = db.execute(
        "SELECT conversation, count(*), min(moment), max(moment) FROM turns WHERE kb = ? AND moment >= ? "
        "GROUP BY conversation ORDER BY max(id) DESC LIMIT ?",
        (kb, canonical(oldest), limit),
    )
    return [
        Conversation(name, kb, turns, datetime.fromisoformat(began), datetime.fromisoformat(last))
        for name, turns, began, last in found
    ]


def remove_turns(db: sqlite3.Connection, kb: str, conversation: str) -> int:
    """Remove a conversation; how many turns it had."""
    return db.execute("DELETE FROM turns WHERE kb = ? AND conversation = ?", (kb, conversation)).rowcount
