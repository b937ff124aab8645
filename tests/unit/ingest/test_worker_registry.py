"""A worker that died is found by those who are left, once, and none that lives is taken for dead."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragstone.ingest.jobs import leases as module
from ragstone.ingest.jobs.leases import WorkerRegistry

ENROL = """
import sys, time
from pathlib import Path
from ragstone.ingest.jobs.leases import WorkerRegistry
with WorkerRegistry(Path(sys.argv[1])).register(sys.argv[2]):
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


def names(registry: WorkerRegistry) -> list[str]:
    found = registry.find_dead()
    for one in found:
        one.release()
    return sorted(one.worker for one in found)


def test_an_empty_registry_has_no_dead_workers(tmp_path: Path) -> None:
    assert WorkerRegistry(tmp_path / "none").find_dead() == []


def test_a_living_worker_is_not_dead(tmp_path: Path) -> None:
    process = living(tmp_path, "host:1:a")
    try:
        with WorkerRegistry(tmp_path).register("host:2:b"):
            assert names(WorkerRegistry(tmp_path)) == []
    finally:
        process.kill()
        process.communicate()


def test_who_leaves_is_off_the_roll(tmp_path: Path) -> None:
    with WorkerRegistry(tmp_path).register("host:1:a"):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_killed_worker_is_dead_until_unregistered(tmp_path: Path) -> None:
    died(tmp_path, "host:1:a")
    registry = WorkerRegistry(tmp_path)
    assert names(registry) == ["host:1:a"]
    (dead,) = registry.find_dead()
    assert WorkerRegistry(tmp_path).find_dead() == [], "somebody sees to it already"
    dead.release()
    assert names(registry) == ["host:1:a"], "and has left it to others"
    (dead,) = registry.find_dead()
    dead.unregister()
    dead.release()
    assert registry.find_dead() == []


def test_who_is_taken_for_dead_before_the_lock_enrols_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock, calls = module.fcntl.flock, []

    def late(handle: int, operation: int) -> None:
        if not calls:
            calls.append(handle)
            for place in tmp_path.iterdir():
                place.unlink()
        flock(handle, operation)

    monkeypatch.setattr(module.fcntl, "flock", late)
    with WorkerRegistry(tmp_path).register("host:1:a"):
        monkeypatch.undo()
        assert calls
        (place,) = tmp_path.iterdir()
        assert place.read_text() == "host:1:a"


def test_a_folder_that_cannot_be_written_costs_the_roll_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with WorkerRegistry(tmp_path / "file" / "workers").register("host:1:a"):
        pass
