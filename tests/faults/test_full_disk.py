"""A disk that is full or read-only: all that is there is read as before, and every write says what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.faults import disk_process

from ragstone import Item, Ragstone, Settings, open_engine
from ragstone.core.errors import StoreFull, StoreReadOnly
from ragstone.stores.ledger.sqlite import file as sqlite_file
from ragstone.testing.fakes import FakeEmbedder

FERRY = "The ferry to the island leaves at nine."
MOUNTED = 'mount -t tmpfs -o size=4m tmpfs "$1" && cp -r "$0" "$1/data" && {} && shift && exec "$@"'
PLACES = {
    "full": MOUNTED.format('{ dd if=/dev/zero of="$1/fill" bs=4k 2>&1 | grep -q "No space"; }'),
    "read-only": MOUNTED.format('mount -o remount,ro "$1"'),
}


def _can_mount() -> bool:
    """Return whether a disk can be mounted here, seen by a child alone."""
    if os.geteuid() or not shutil.which("unshare"):
        return False
    return not subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True
    ).returncode


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    with Ragstone(data_dir=tmp_path / "data") as stone:
        stone.ingest_items([Item("notes", "1", "notes/1", FERRY)])
        stone.search("earlier ferry", conversation="c1")
    return tmp_path / "data"


def run_child(folder: Path, *options: str, before: Sequence[str] = ()) -> Any:
    command = [*before, sys.executable, disk_process.__file__, str(folder), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("place", ["nothing", *(PLACES if _can_mount() else ())])
def test_reading_goes_on_where_nothing_can_be_written(data: Path, tmp_path: Path, place: str) -> None:
    if place == "nothing":
        done = run_child(data, "nothing")
    else:
        disk = tmp_path / "disk"
        disk.mkdir()
        before = ["unshare", "-m", "sh", "-c", PLACES[place], str(data), str(disk)]
        done = run_child(disk / "data", before=before)
    assert done["read"] == {
        "hits": [FERRY],
        "said": ["conversation"],
        "answer": f"{FERRY} [1]",
        "verdict": "VERIFIED",
        "text": FERRY,
        "chunks": 1,
        "documents": 1,
        "earlier": ["earlier ferry"],
        "searches": ["earlier ferry"],
        "failures": [],
        "tenants": ["default"],
    }
    codes = {"nothing": {"store_full", "store_read_only"}, "full": {"store_full"}, "read-only": {"store_read_only"}}
    assert all(code in codes[place] and advised for code, advised in done["written"].values()), done["written"]
    assert done["after"] == 1


class _Refusing:
    """Stands in for opening a file: while it is on, only reading is possible."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = False
        prepare = sqlite_file.SqliteFile._prepare

        def refuse(file: sqlite_file.SqliteFile, schema: Any) -> None:
            if self.on:
                raise OSError(30, "Read-only file system")
            prepare(file, schema)

        monkeypatch.setattr(sqlite_file.SqliteFile, "_prepare", refuse)


async def test_what_was_opened_for_reading_sees_later_writes_and_writes_itself_once_it_can(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = _Refusing(monkeypatch)
    refusing.on = True
    settings = Settings(data_dir=data, cache={"search_seconds": 0})
    async with open_engine(settings) as reading, open_engine(settings) as writing:
        assert len((await reading.workspace("default").search("ferry")).hits) == 1
        with pytest.raises((StoreReadOnly, StoreFull)):
            await reading.workspace("default").documents.ingest_items([Item("notes", "2", "n/2", "A ferry at ten.")])
        refusing.on = False
        await writing.workspace("default").documents.ingest_items([Item("notes", "3", "n/3", "A ferry at noon.")])
        assert len((await reading.workspace("default").search("ferry")).hits) == 2
        await reading.workspace("default").documents.ingest_items([Item("notes", "4", "n/4", "A ferry at five.")])
        assert len((await writing.workspace("default").search("ferry")).hits) == 3


def test_changes_that_are_only_in_the_log_are_not_left_out(data: Path, tmp_path: Path) -> None:
    path = data / "control.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("UPDATE tenants SET name = 'renamed'")
    try:
        shutil.copytree(data, tmp_path / "copy")
    finally:
        db.close()
    assert (tmp_path / "copy" / "control.db-wal").stat().st_size > 0
    address = sqlite_file.read_only_address(tmp_path / "copy" / "control.db")
    assert "immutable" not in address
    with sqlite3.connect(address, uri=True) as copy:
        assert copy.execute("SELECT name FROM tenants").fetchall() == [("renamed",)]
    assert "immutable" in sqlite_file.read_only_address(data / "control.db")


def test_a_file_of_an_earlier_version_asks_for_a_disk_that_can_be_written(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(data / "control.db") as db:
        db.execute("UPDATE alembic_version SET version_num = '0001'")
    _Refusing(monkeypatch).on = True
    with Ragstone(data_dir=data) as stone, pytest.raises((StoreReadOnly, StoreFull), match=r"control\.db"):
        stone.search("ferry")
