"""Overwrite what SQLite keeps of deleted rows.

Pages are overwritten as rows go (`secure_delete`). What is left are the words in the segments of the full-text index,
until they are merged, and the write-ahead log, until it is emptied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ragstone.core.errors import StoreBusy
from ragstone.stores.ledger.sqlite.file import SqliteConnection, SqliteFile

PAGES = 500
"""Of the full-text index, merged in one transaction: others may write in between."""
MOST_STEPS = 20_000
"""A stop for what should end by itself: ten million pages are 40 GB of index."""


async def scrub(file: SqliteFile, kb_ids: Sequence[int]) -> None:
    """Overwrite what is left of the deleted chunks of some kbs."""
    for kb_id in kb_ids:
        for step in range(MOST_STEPS):
            # A negative number has all segments merged into one; a positive one goes on with that.
            if not await file.transact(partial(_merge, kb_id=kb_id, first=not step)):
                break
    await empty_log(file)


async def empty_log(file: SqliteFile) -> None:
    """Bring the write-ahead log into the file, and cut it to nothing."""
    async with file.turn:
        busy, *_ = await file.write(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
    if busy:
        raise StoreBusy(
            f"{file.path.name} is being read all the time, and its log cannot be emptied",
            hint="it is emptied when the last process that has it open ends",
        )


def _merge(connection: SqliteConnection, kb_id: int, *, first: bool) -> bool:
    """Merge some of a kb's index; whether there may be more to do."""
    table = f"lexical_{int(kb_id)}"
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return False
    before = connection.total_changes
    connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-PAGES if first else PAGES,))
    return first or connection.total_changes - before >= 2
