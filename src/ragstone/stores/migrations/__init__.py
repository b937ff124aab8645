"""Bring a database to the newest schema.

A new SQLite file is made from `newest.sql`, and one that is current is recognised by one cheap look: alembic, which
takes longer to import than a search takes to run, is loaded only for a file of an earlier version.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ragstone.core.errors import StoreError

HEADS = {"control": "0012", "tenant": "0012", "log": "0001"}
Schema = Literal["control", "tenant", "log"]
NEWEST: dict[Schema, Path] = {
    "control": Path(__file__).parent / "control" / "newest.sql",
    "tenant": Path(__file__).parent / "tenant" / "newest.sql",
    "log": Path(__file__).parent / "log" / "newest.sql",
}
"""Files with the statements that make an empty database current; written by `scripts/newest_schema.py`."""
ONE_AT_A_TIME = threading.Lock()
"""Alembic keeps what it works on in the module, for the whole process."""


def is_current(connection: sqlite3.Connection, schema: Schema) -> bool:
    """Return whether the newest migration has been applied."""
    found = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'"
    ).fetchone()
    if not found[0]:
        return False
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is not None and row[0].isdigit() and row[0] > HEADS[schema]:
        raise StoreError(
            f"this data was written by a newer Ragstone (schema {row[0]}, known here: {HEADS[schema]})",
            hint="upgrade ragstone",
        )
    return row is not None and row[0] == HEADS[schema]


def create(connection: sqlite3.Connection, schema: Schema) -> bool:
    """Make the tables of a new file in one transaction; False if it holds tables of an earlier version."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return is_current(connection, schema)  # a second process was quicker, or the file is older
        for statement in _statements(schema):
            connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return True


@cache
def _statements(schema: Schema) -> tuple[str, ...]:
    statements = [""]
    for line in NEWEST[schema].read_text(encoding="utf-8").splitlines(keepends=True):
        statements[-1] += line
        if sqlite3.complete_statement(statements[-1]):
            statements.append("")
    return tuple(statements[:-1])


def list_tables(schema: Schema) -> list[str]:
    """Return the names of the tables that a schema has on every database."""
    made = (re.match(r"CREATE TABLE (\w+)", statement.lstrip()) for statement in _statements(schema))
    return [found[1] for found in made if found and found[1] != "alembic_version"]


def upgrade(path: Path, schema: Schema) -> None:
    """Apply what is missing, in one transaction that a second process waits for."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import DBAPIError

    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 60, "isolation_level": None})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with ONE_AT_A_TIME, engine.begin() as connection:
            run_migrations(connection, schema)
    except DBAPIError as error:
        raise error.orig or error from error  # as SQLite says it itself
    finally:
        engine.dispose()


def run_migrations(connection: Any, schema: Schema, **attributes: str) -> None:
    """Apply the migrations of a schema that a database lacks."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / schema))
    config.set_main_option("path_separator", "os")
    config.attributes |= {"connection": connection, **attributes}
    command.upgrade(config, "head")
