"""Files of an earlier schema are migrated, and new ones are made as the migrations make them."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from tests.warm import warm_python

from ragstone.stores import migrations
from ragstone.stores.ledger.sqlite.file import SqliteFile
from ragstone.stores.migrations import HEADS, Schema, create, is_current, upgrade

OPEN_LEDGER = """
import asyncio, sys
from pathlib import Path
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.testing.builders import make_version, put

async def main():
    ledger = SqliteLedger(Path(sys.argv[1]), [Fts5Writer()])
    print("ready", flush=True)
    sys.stdin.readline()
    await put(ledger, make_version(sys.argv[2]))
    rows = ledger.of("default")
    print(sorted(document.external_id for document in await rows.documents(await rows.kb("default"))))
    await ledger.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("name", ["control", "tenant", "log"])
def test_a_new_file_is_made_as_the_migrations_make_it(name: Schema, tmp_path: Path) -> None:
    """If not, run `python -m scripts.newest_schema`."""
    upgrade(tmp_path / "migrated.db", name)
    SqliteFile(tmp_path / "created.db", name).close()
    assert _content(tmp_path / "created.db") == _content(tmp_path / "migrated.db")


def test_a_file_of_an_earlier_version_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        assert not create(connection, "tenant")
        assert not connection.in_transaction
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("alembic_version",)]


@pytest.mark.parametrize("name", ["control", "tenant", "log"])
def test_the_head_is_the_newest_script(name: Schema) -> None:
    folder = Path(migrations.__file__).parent / name
    assert ScriptDirectory(str(folder)).get_current_head() == HEADS[name]


@pytest.mark.req("R-DOM-40")
@pytest.mark.parametrize("name", ["control", "tenant", "log"])
def test_no_migration_takes_anything_away(name: Schema) -> None:
    folder = Path(migrations.__file__).parent / name
    for script in ScriptDirectory(str(folder)).walk_revisions():
        source = Path(script.path).read_text(encoding="utf-8")
        for forbidden in ("drop_", "rename_table", "alter_column", "DROP ", "RENAME ", "DELETE "):
            assert forbidden not in source, f"{script.path} has {forbidden!r}"


def test_a_current_database_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        assert not is_current(connection, "tenant")
        upgrade(path, "tenant")
        assert is_current(connection, "tenant")
        connection.execute("UPDATE alembic_version SET version_num = 'older'")
        assert not is_current(connection, "tenant")
        connection.execute("DELETE FROM alembic_version")
        assert not is_current(connection, "tenant")


def test_upgrading_again_keeps_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    upgrade(path, "control")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO tenants (name, id, created_at) VALUES ('one', 'id', 'now')")
        connection.commit()
        upgrade(path, "control")
        assert connection.execute("SELECT name FROM tenants").fetchall() == [("one",)]


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "data" / "x.db", "control")
    file.close()
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_who_opens_a_file_that_another_begins_to_write_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.db"
    path.touch()
    waits: list[float] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def let_go(seconds: float) -> None:
            waits.append(seconds)
            other.execute("ROLLBACK")

        monkeypatch.setattr("ragstone.stores.ledger.sqlite.file.time.sleep", let_go)
        SqliteFile(path, "control").close()
    assert len(waits) == 1


def test_two_processes_may_open_a_fresh_folder_at_once(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [*warm_python(), "-c", OPEN_LEDGER, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    seen = []
    for child in children:
        out, err = child.communicate(timeout=240)
        assert child.returncode == 0, err
        seen.append(out.strip())
    assert "['a', 'b']" in seen


def _content(path: Path) -> tuple[dict[str, str | None], dict[str, list[tuple[object, ...]]]]:
    with closing(sqlite3.connect(path)) as connection:
        definitions = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in tables}
    return {name: sql and " ".join(sql.split()) for name, sql in definitions.items()}, rows
