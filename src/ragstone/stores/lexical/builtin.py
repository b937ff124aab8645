"""Maintenance of the database's own lexical index while another one answers."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.stores.ledger.sqlite.file import SqliteDialect
from ragstone.stores.lexical.postgres import forget_postings, tenant_of
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import note_growth


class BuiltinIndexWriter:
    """Keeps the database's own index usable, for when the settings choose it again.

    SQLite's costs little and is kept in step. PostgreSQL's would be most of the work of a write: its postings are
    dropped with the first change that they miss, and rebuilt by the first search that needs them.
    """

    def __init__(self) -> None:
        self._fts5 = Fts5Writer()

    def open(self, connection: Connection, kb_id: int) -> None:
        if _is_sqlite(connection):
            self._fts5.open(connection, kb_id)

    def add(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        if _is_sqlite(connection):
            self._fts5.add(connection, kb_id, rows)
        else:
            forget_postings(connection, kb_id)
            note_growth(connection, tenant_of(connection), rows)

    def remove(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        if _is_sqlite(connection):
            self._fts5.remove(connection, kb_id, rows)
        else:
            forget_postings(connection, kb_id)

    def drop(self, connection: Connection, kb_id: int) -> None:
        if _is_sqlite(connection):
            self._fts5.drop(connection, kb_id)
        else:
            forget_postings(connection, kb_id)


def _is_sqlite(connection: Connection) -> bool:
    return isinstance(connection.dialect, SqliteDialect)
