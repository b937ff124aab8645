"""Files that are replaced whole or not at all, and that are there after a power cut."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_DESCRIPTORS = Path("/proc/self/fd")


LEFTOVER = re.compile(r"(?:\.[0-9a-f]{16})?\.part")


def write_atomically(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file aside, readable by its owner only, and move it into place once it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_aside(path) as file:
        file.writelines(parts)


@contextmanager
def write_aside(path: Path) -> Iterator[BinaryIO]:
    """Yield a file, readable by its owner only, that is moved into place once it is on the disk.

    It has no name until then, where the file system can do that: a process that is killed leaves nothing behind.
    """
    _remove_leftovers(path)
    aside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    handle = _open_unnamed(path.parent)
    unnamed = handle is not None
    if handle is None:
        handle = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # it is in use, and no leftover
            yield file
            file.flush()
            os.fsync(file.fileno())
            if unnamed:
                _give_name(file.fileno(), aside)
            put_in_place(aside, path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise


def _open_unnamed(folder: Path) -> int | None:
    if not hasattr(os, "O_TMPFILE") or not _DESCRIPTORS.exists():
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return None  # opening it by a name says what is wrong, if anything is
        raise


def _give_name(handle: int, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # Python follows the link to the file only when a folder is given, too.
        os.link(_DESCRIPTORS / str(handle), path.name, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _remove_leftovers(path: Path) -> None:
    """Remove what processes that were killed left of the same file."""
    for part in path.parent.glob(f"{glob.escape(path.name)}*.part"):
        if LEFTOVER.fullmatch(part.name.removeprefix(path.name)):
            with suppress(OSError), part.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()


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
