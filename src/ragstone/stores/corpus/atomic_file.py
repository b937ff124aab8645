"""Files that are replaced whole or not at all, and that are there after a power cut."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file aside, readable by its owner only, and move it into place once it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
        try:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
            put_in_place(Path(file.name), path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def put_in_place(aside: Path, path: Path) -> None:
    """Move a complete file to another path, durably."""
    aside.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
