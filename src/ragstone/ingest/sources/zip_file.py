"""Opening a ZIP that nobody vouches for: bounded memory, names that stay inside, damage as one kind of error."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, BinaryIO, cast

from ragstone.core.errors import InputError, ParseError, ParserLimit, UnsupportedFormat
from ragstone.ingest.parsers.text.cleaning import printable
from ragstone.settings.tree import LimitSettings

_CHUNK = 64 * 1024
_DIRECTORY_ENTRY = 256
_FAR = 1 << 40
_DRIVE = re.compile(r"[A-Za-z]:")
# Only these are unpacked in bounded steps: one step of bzip2 or LZMA may fill the memory.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,
)


@contextmanager
def damage_named(uri: str) -> Iterator[None]:
    """Turn what zipfile raises on bytes that are no proper archive into a `ParseError` that names it."""
    try:
        yield
    except _DAMAGE as error:
        raise ParseError(f"{uri} is damaged: {error}", hint="copy or download it again") from error


@contextmanager
def open_zip(file: BinaryIO, uri: str, limits: LimitSettings) -> Iterator[zipfile.ZipFile]:
    """The archive with its list of members, once it is known to be short enough."""
    most = 2 * _CHUNK + limits.archive_entries * _DIRECTORY_ENTRY
    with damage_named(uri):
        archive = zipfile.ZipFile(cast("IO[bytes]", _Guarded(file, most)))
    with archive:
        if len(archive.filelist) > limits.archive_entries:
            raise ParserLimit(
                f"{uri} has more entries than limits.archive_entries allows ({limits.archive_entries})",
                hint="unpack it and ingest the folder, or raise the limit",
            )
        yield archive


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, uri: str) -> bytes:
    """What a member holds: never more than it declares, whatever its packed bytes would give."""
    with damage_named(uri), archive.open(info) as stream:
        parts = []
        while part := stream.read(_CHUNK):
            parts.append(part)
        return b"".join(parts)


def member_path(info: zipfile.ZipInfo) -> str:
    """The path inside the archive, with slashes."""
    name = info.orig_filename.replace("\\", "/")
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def check_member(info: zipfile.ZipInfo, uri: str) -> None:
    """Refuse what would lead out of the archive if anyone unpacked it, and what cannot be unpacked safely."""
    path, name = member_path(info), printable(info.orig_filename)
    rooted = info.orig_filename.startswith(("/", "\\")) or _DRIVE.match(path)
    if rooted or ".." in path.split("/") or "\0" in path or not path:
        raise InputError(f"{uri} holds '{name}', a name that leads out of it")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise InputError(f"{uri} holds '{name}', which is a link or no regular file")
    if info.flag_bits & 0x1:
        raise UnsupportedFormat(f"{uri} holds '{name}', which is encrypted")
    if info.compress_type not in _METHODS:
        raise UnsupportedFormat(f"{uri} holds '{name}', which is packed by a method that is not read")


def modified_at(info: zipfile.ZipInfo) -> datetime | None:
    """When a member was changed, as far as its archive says; ZIP knows no time zone."""
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None


class _Guarded:
    """A file that refuses large reads: zipfile takes an archive's whole list of members into memory at once."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._most = most
        self.tell = file.tell
        self.seekable = file.seekable

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 0 and not 0 <= offset < _FAR:
            raise zipfile.BadZipFile("it points outside itself")
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(self._most + 1 if size < 0 else min(size, self._most + 1))
        if len(data) > self._most:
            raise zipfile.BadZipFile("its list of members is too long; limits.archive_entries bounds it")
        return data
