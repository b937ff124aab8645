"""The folder of a test run: its own, given back, and taken from runs that were killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests import scratch

RUN = "import sys; from tests import scratch; scratch.MEMORY = scratch.Path(sys.argv[1]); scratch.ROOM = 0; "


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the memory, in a process that nobody gave a folder."""
    monkeypatch.setattr(scratch, "MEMORY", tmp_path)
    monkeypatch.setattr(scratch, "ROOM", 0)
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)
    monkeypatch.setenv("TMPDIR", "x")
    monkeypatch.delenv("TMPDIR")
    return tmp_path


def test_files_go_to_a_folder_of_the_run_until_it_ends(memory: Path) -> None:
    own = scratch.own_folder()
    assert own is not None
    (folder,) = memory.iterdir()
    assert Path(tempfile.gettempdir()) == folder
    own.remove()
    assert list(memory.iterdir()) == []


def test_a_folder_that_somebody_chose_is_kept_to(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert scratch.own_folder() is None
    assert list(memory.iterdir()) == []


def test_without_room_the_files_stay_on_the_disk(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "ROOM", 1 << 60)
    assert scratch.own_folder() is None
    assert scratch.quick_folder() == Path("/tmp")


def test_only_the_folder_of_a_run_that_died_is_removed(memory: Path) -> None:
    living = scratch.own_folder()
    assert living is not None
    (kept,) = memory.iterdir()
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    killed = subprocess.run(
        [sys.executable, "-c", RUN + "own = scratch.own_folder(); import os; os.kill(os.getpid(), 9)", memory],
        cwd=Path(scratch.__file__).parents[1],
        env=environment,
        check=False,
    )
    assert killed.returncode == -9
    assert len(list(memory.iterdir())) == 2
    del os.environ["TMPDIR"]
    another = scratch.own_folder()
    assert another is not None
    assert len(list(memory.iterdir())) == 2
    another.remove()
    assert list(memory.iterdir()) == [kept]
    living.remove()
