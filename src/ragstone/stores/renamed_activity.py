"""What was asked of a kb goes along with its new name, in the tenant's activity file."""

from __future__ import annotations

import sqlite3

VOTES = "same_query, chunk_id, voter, moment, query, document_id, vote"


def merge_kb(db: sqlite3.Connection, old: str, new: str) -> None:
    """Move what is kept under a kb's old name to what is under the new one, where some of it may be already.

    Done twice it is the same as done once, so what was cut short is finished by doing it again.
    """
    for table in ("searches", "turns"):
        db.execute(f"UPDATE {table} SET kb = ? WHERE kb = ?", (new, old))
    db.execute(
        f"INSERT INTO votes (kb, {VOTES}) SELECT ?, {VOTES} FROM votes WHERE kb = ? ON CONFLICT DO UPDATE SET "
        "moment = excluded.moment, query = excluded.query, document_id = excluded.document_id, "
        "vote = excluded.vote WHERE excluded.moment >= votes.moment",
        (new, old),
    )
    db.execute(
        "INSERT OR IGNORE INTO golden (kb, query, document_id, origin) "
        "SELECT ?, query, document_id, origin FROM golden WHERE kb = ?",
        (new, old),
    )
    for table in ("votes", "golden"):
        db.execute(f"DELETE FROM {table} WHERE kb = ?", (old,))
