"""Reading a file where nothing can be written: on a full disk, a read-only one, or in a folder of somebody else.

SQLite keeps two files beside a database in WAL mode and fails to read it when it cannot make them. A database whose log
is empty is complete by itself and can be read without them, as long as nobody changes it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from ragstone.core.errors import StoreError, StoreFull, StoreReadOnly

_REFUSED = frozenset((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL))
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
DISK_ERRORS = _FULL | {errno.EROFS}
"""Numbers of errors that a disk without space, or without permission to write, gives."""
LITTLE_BYTES = 128 * 1024
"""With less space than this, SQLite cannot make the files that it keeps beside a database."""


def is_refused(error: BaseException) -> bool:
    """Return whether an error may come from a disk or folder that takes no writes."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _REFUSED
    return isinstance(error, OSError) and error.errno in DISK_ERRORS | {errno.EACCES, errno.EPERM}


def read_only_address(path: Path) -> str:
    """Return the address under which SQLite opens a file without writing anything."""
    log = path.with_name(f"{path.name}-wal")
    # A log with changes in it must be read, too: then the files beside the database are there, and are used.
    has_changes = log.exists() and log.stat().st_size > 0
    return f"{path.resolve().as_uri()}?mode=ro{'' if has_changes else '&immutable=1'}"


def stamp(path: Path) -> tuple[int, ...]:
    """Return numbers that change when anyone writes to a database file."""
    found: list[int] = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            status = file.stat()
        except FileNotFoundError:
            found += (0, 0)
        else:
            found += (status.st_size, status.st_mtime_ns if status.st_size else 0)
    return tuple(found)


def refuse_writes(path: Path, error: BaseException | None = None) -> StoreError:
    """Return the error for a write to a file that can only be read, with what to do about it."""
    told = str(getattr(error, "strerror", None) or error or "")
    is_full, is_read_only = _look_at_disk(path)
    if getattr(error, "errno", None) in _FULL or "disk is full" in told or is_full:
        return full_error(path, told)
    why = "its disk is read-only" if is_read_only else f"its folder takes no new files ({told})"
    return StoreReadOnly(
        f"{path} can be read but not written: {why}",
        hint="mount the disk writable, or check the owner and permissions of the folder; reading goes on",
    )


def full_error(path: Path, told: str) -> StoreFull:
    """Return the error for a write that found no space."""
    return StoreFull(
        f"{path.name} cannot be written, the disk is full{f': {told}' if told else ''}",
        hint="free some space; reading goes on, and nothing that was acknowledged is lost",
    )


def _look_at_disk(path: Path) -> tuple[bool, bool]:
    """Return whether the disk of a file is full, and whether it is read-only."""
    try:
        status = os.statvfs(path.parent)
    except OSError:
        return False, False
    is_read_only = bool(status.f_flag & os.ST_RDONLY)
    return not is_read_only and status.f_bavail * status.f_frsize < LITTLE_BYTES, is_read_only
