"""Who works on this machine: nobody waits for the lease of a worker that is known to be dead.

Each worker holds a lock on a file of its own. The system lets go of it however the worker ends, so a file that
another can lock is a dead worker's. Where that cannot be told, on another machine, the lease tells it later.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)
LONGEST_NAME = 500


@dataclass(frozen=True, slots=True)
class Fallen:
    """A worker that died; nobody else sees to it while this is held."""

    worker: str
    place: Path
    handle: int

    def strike(self) -> None:
        """Take it off the roll: all that it held has been taken back."""
        self.place.unlink(missing_ok=True)

    def release(self) -> None:
        """Leave the rest to whoever comes next."""
        os.close(self.handle)


class Roll:
    """The workers that share a data folder on one machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def enrolled(self, worker: str) -> Iterator[None]:
        """Be on the roll while the block runs."""
        place = self._folder / hashlib.sha256(worker.encode()).hexdigest()[:32]
        try:
            handle = _locked(place, worker)
        except OSError as error:
            logger.warning("should this worker die, its lease must run out first: %s", error)
            yield
            return
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
            os.close(handle)

    def fallen(self) -> list[Fallen]:
        """Workers that died, each for its finder to see to."""
        with suppress(FileNotFoundError):
            return [found for place in self._folder.iterdir() if (found := _found_dead(place))]
        return []


def _locked(place: Path, worker: str) -> int:
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.write(handle, worker.encode())
        except OSError:
            os.close(handle)
            raise
        if _is_at(place, handle):
            return handle
        os.close(handle)  # taken for a dead worker's before it was locked


def _found_dead(place: Path) -> Fallen | None:
    try:
        handle = os.open(place, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(place, handle):
            return Fallen(os.pread(handle, LONGEST_NAME, 0).decode("utf-8", "replace"), place, handle)
    except BlockingIOError:
        pass  # alive, or somebody else is at it
    os.close(handle)
    return None


def _is_at(place: Path, handle: int) -> bool:
    try:
        return os.path.samestat(place.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
