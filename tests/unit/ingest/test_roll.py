"""A worker that died is found by those who are left, once, and none that lives is taken for dead."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragstone.ingest.jobs import leases as module
from ragstone.ingest.jobs.leases import Roll

ENROL = """
import sys, time
from pathlib import Path
from ragstone.ingest.jobs.leases import Roll
with Roll(Path(sys.argv[1])).enrolled(sys.argv[2]):
    print("enrolled", flush=True)
    time.sleep(60)
"""


def living(folder: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ENROL, str(folder), name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "enrolled\n"
    return process


def died(folder: Path, name: str) -> None:
    """A worker of this name was killed."""
    process = living(folder, name)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def names(roll: Roll) -> list[str]:
    found = roll.fallen()
    for one in found:
        one.release()
    return sorted(one.worker for one in found)


def test_nobody_has_fallen_where_nobody_worked(tmp_path: Path) -> None:
    assert Roll(tmp_path / "none").fallen() == []


def test_who_lives_has_not_fallen(tmp_path: Path) -> None:
    process = living(tmp_path, "host:1:a")
    try:
        with Roll(tmp_path).enrolled("host:2:b"):
            assert names(Roll(tmp_path)) == []
    finally:
        process.kill()
        process.communicate()


def test_who_leaves_is_off_the_roll(tmp_path: Path) -> None:
    with Roll(tmp_path).enrolled("host:1:a"):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_who_was_killed_has_fallen_until_struck(tmp_path: Path) -> None:
    died(tmp_path, "host:1:a")
    roll = Roll(tmp_path)
    assert names(roll) == ["host:1:a"]
    (fallen,) = roll.fallen()
    assert Roll(tmp_path).fallen() == [], "somebody sees to it already"
    fallen.release()
    assert names(roll) == ["host:1:a"], "and has left it to others"
    (fallen,) = roll.fallen()
    fallen.strike()
    fallen.release()
    assert roll.fallen() == []


def test_who_is_taken_for_dead_before_the_lock_enrols_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, calls = module.fcntl.flock, []

    def late(handle: int, operation: int) -> None:
        if not calls:
            calls.append(handle)
            for place in tmp_path.iterdir():
                place.unlink()
        flock(handle, operation)

    monkeypatch.setattr(module.fcntl, "flock", late)
    with Roll(tmp_path).enrolled("host:1:a"):
        monkeypatch.undo()
        assert calls
        (place,) = tmp_path.iterdir()
        assert place.read_text() == "host:1:a"


def test_a_folder_that_cannot_be_written_costs_the_roll_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with Roll(tmp_path / "file" / "workers").enrolled("host:1:a"):
        pass
