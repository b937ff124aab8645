"""Where the tests keep their files: in memory when it has room for them.

A database makes hundreds of small files for each test and waits until every write is on the disk; on a disk that is
most of what such a test takes. What a killed process leaves behind is the same in both. `TMPDIR=/tmp make test` keeps
the files on the disk, where they can be looked at afterwards.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3
OURS = "ragstone-"
"""Short, since the path of a socket may have a hundred characters only."""
LOCK = "in-use"


def quick_folder() -> Path:
    """A folder that all may write to, in memory or else on the disk."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM:
        return MEMORY
    return Path("/tmp")


class OwnFolder:
    """A folder for this process and its children, locked while the process lives."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=OURS, dir=MEMORY))
        self._lock = (self.path / LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.environ["TMPDIR"] = str(self.path)
        tempfile.tempdir = None  # what was looked up before
        self._owner = os.getpid()
        atexit.register(self.remove)  # so early that it comes after the servers that end at the exit

    def remove(self) -> None:
        """Give the memory back; not for a child that was forked."""
        if os.getpid() != self._owner:
            return
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)


def own_folder() -> OwnFolder | None:
    """Send this process and its children to a fresh folder; None when somebody has chosen one already."""
    if "TMPDIR" in os.environ or quick_folder() != MEMORY:
        return None
    _remove_abandoned()
    return OwnFolder()


def _remove_abandoned() -> None:
    """Runs that were killed could not give their memory back."""
    for path in MEMORY.glob(f"{OURS}*/{LOCK}"):
        try:
            with path.open() as lock:
                if _is_free(lock):
                    shutil.rmtree(path.parent, ignore_errors=True)
        except OSError:  # somebody else's, or gone by now
            continue


def _is_free(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
