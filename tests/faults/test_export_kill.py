"""kill -9 while an archive is written: nothing of its text is left behind."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.warm import warm_python

from ragstone import Item, Ragstone
from ragstone.ingest import uploads
from ragstone.stores.corpus import atomic_file
from ragstone.stores.corpus.atomic_file import write_atomically
from ragstone.testing.fakes import FakeEmbedder

KILLED = """
import os, sys
from ragstone import Ragstone
from ragstone.transfer.archive import write

def die(*_):
    os.kill(os.getpid(), 9)

write._write_manifest = die
with Ragstone(data_dir=sys.argv[1]) as stone:
    stone.moves.export_archive(sys.argv[2])
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    with Ragstone(data_dir=tmp_path / "data") as stone:
        stone.ingest_items([Item("notes", "1", "notes/1", "The ferry leaves at nine.")])
    return tmp_path / "data"


def test_a_killed_export_leaves_nothing_and_the_next_one_removes_what_an_earlier_version_left(
    data: Path, tmp_path: Path
) -> None:
    place = tmp_path / "out"
    place.mkdir()
    command = [*warm_python(), "-c", KILLED, str(data), str(place / "kb.zip")]
    assert subprocess.run(command, check=False, timeout=120).returncode == -9
    assert list(place.iterdir()) == []
    (place / "kb.zip.part").write_text("plain text")
    with Ragstone(data_dir=data) as stone:
        stone.moves.export_archive(place / "kb.zip")
    assert [file.name for file in place.iterdir()] == ["kb.zip"]


def test_without_unnamed_files_the_next_write_removes_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_file, "_open_unnamed", lambda _: None)
    path = tmp_path / "a.json"
    left, used, own = (tmp_path / f"a.json.{name}part" for name in ("0" * 16 + ".", "1" * 16 + ".", "notes."))
    for file in (left, used, own):
        file.write_bytes(b"text")
    with used.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_atomically(path, [b"{", b"}"])
    assert path.read_bytes() == b"{}"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == sorted((path, used, own))


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_write_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool
) -> None:
    if not unnamed:
        monkeypatch.setattr(atomic_file, "_open_unnamed", lambda _: None)
    path = tmp_path / "a.json"
    path.write_bytes(b"before")

    def fail() -> Iterator[bytes]:
        yield b"after"
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        write_atomically(path, fail())
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a.json", b"before")]


def test_a_scan_removes_copies_of_scans_that_were_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned, running = (tmp_path / f"{uploads.COPIES}{name}" for name in ("old", "new"))
    for folder in (abandoned, running):
        folder.mkdir()
        (folder / "file").write_text("plain text")
    os.utime(abandoned, (0, 0))
    asyncio.run(uploads.scan(["true"], b"text", "a.txt"))
    assert list(tmp_path.iterdir()) == [running]
