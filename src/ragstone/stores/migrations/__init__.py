"""Bring a database to the newest schema.

A database that is already there is recognised by one cheap look, so that alembic, which takes longer to
import than a search takes to run, is loaded only when there is something to do.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Literal

from ragstone.core.errors import StoreError

HEADS = {"control": "0005", "tenant": "0007"}
Schema = Literal["control", "tenant"]
ONE_AT_A_TIME = threading.Lock()
"""Alembic keeps what it works on in the module, for the whole process."""


def is_current(connection: sqlite3.Connection, schema: Schema) -> bool:
    """Whether the newest migration has been applied."""
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


def upgrade(path: Path, schema: Schema) -> None:
    """Apply what is missing, in one transaction that a second process waits for."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import DBAPIError

    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 60, "isolation_level": None})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with ONE_AT_A_TIME, engine.begin() as connection:
            config = Config()
            config.set_main_option("script_location", str(Path(__file__).parent / schema))
            config.set_main_option("path_separator", "os")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except DBAPIError as error:
        raise error.orig or error from error  # as SQLite says it itself
    finally:
        engine.dispose()
