"""Write what the migrations make of an empty SQLite file, so that a new one is made without alembic.

Run it after adding a migration: `python -m scripts.newest_schema`. A test fails while the files are out of date.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from ragstone.stores.migrations import HEADS, NEWEST, Schema, upgrade

FTS5_TABLES = ("_config", "_content", "_data", "_docsize", "_idx")


def newest_sql(schema: Schema) -> str:
    """Return the statements that make a file of the newest schema."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "migrated.db"
        upgrade(path, schema)
        with closing(sqlite3.connect(path)) as connection:
            made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
            definitions = dict(made.fetchall())
    virtual = [name for name, sql in definitions.items() if sql.startswith("CREATE VIRTUAL TABLE")]
    implied = {f"{name}{suffix}" for name in virtual for suffix in FTS5_TABLES} | {"sqlite_sequence"}
    statements = [sql for name, sql in definitions.items() if name not in implied]
    statements.append(f"INSERT INTO alembic_version (version_num) VALUES ('{HEADS[schema]}')")
    lines = "".join(f"{statement.strip()};\n" for statement in statements).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def main() -> None:
    """Write the file of each schema."""
    for schema, path in NEWEST.items():
        path.write_text(newest_sql(schema), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
