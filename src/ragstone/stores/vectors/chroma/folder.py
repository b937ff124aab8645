"""The folder of an embedded Chroma: who owns it, and what Chroma forgets to remove from it."""

from __future__ import annotations

import fcntl
import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import IO
from uuid import UUID

from ragstone.core.errors import StoreBusy

logger = logging.getLogger(__name__)
LOCK = "ragstone.lock"
DATABASE = "chroma.sqlite3"


def own(folder: Path) -> IO[bytes]:
    """Make the folder, close it to others and become its owner.

    Vectors that two processes write to one folder at a time cannot all be found again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    lock = (folder / LOCK).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise StoreBusy(
            f"Chroma's folder {folder} is in use",
            hint="close what uses it, or run one Chroma server for all and set store.vectors.url",
        ) from error
    return lock


def disown(lock: IO[bytes]) -> None:
    """Let others have the folder."""
    # A child that was forked meanwhile holds the same open file, which closing alone would leave locked.
    fcntl.flock(lock, fcntl.LOCK_UN)
    lock.close()


def remove_dropped(folder: Path) -> None:
    """Remove the vectors of collections that were dropped, which Chroma leaves behind."""
    # In this order: a folder that is there now was in the database before, if it is not a dropped one's.
    found = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and _is_uuid(path)]
    if not found:
        return
    try:
        with closing(sqlite3.connect(f"{(folder / DATABASE).as_uri()}?mode=ro", uri=True)) as database:
            known = {row[0] for row in database.execute("SELECT id FROM segments")}
    except sqlite3.Error as error:
        logger.warning("the vectors of dropped collections stay in %s: %s", folder, error)
        return
    for path in found:
        if path.name not in known:
            shutil.rmtree(path)


def _is_uuid(path: Path) -> bool:
    try:
        return str(UUID(path.name)) == path.name
    except ValueError:
        return False
