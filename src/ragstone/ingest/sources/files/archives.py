"""Opening an untrusted ZIP: bounded memory, names that stay inside, damage as one kind of error."""

from __future__ import annotations

import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import IO, BinaryIO, cast

from ragstone.core.errors import InputError, ParseError, ParserLimit, RagstoneError, UnsupportedFormat
from ragstone.core.types import Failure, Item, failure_of
from ragstone.ingest.parsers.draft import printable
from ragstone.ingest.sources.files.walk import is_document, is_skipped, own_name, report_skipped
from ragstone.ingest.sources.mail.mailboxes import is_mailbox, read_mailbox
from ragstone.settings.tree import LimitSettings

_CHUNK = 64 * 1024
_DIRECTORY_ENTRY = 256
_FAR = 1 << 40
_DRIVE = re.compile(r"[A-Za-z]:")
# Only these are unpacked in bounded steps: one step of bzip2 or LZMA may fill the memory.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, OverflowError, ValueError)
MEGABYTE = 1024 * 1024
MAX_RATIO = 200
"""Text packs 3 to 20 times, a sparse table 100 times; deflate ends at 1,032 times, where bombs are."""
_FREE_RATIO_BYTES = MEGABYTE
_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_DOCUMENT_PARTS = {"[Content_Types].xml", "mimetype"}
_FIRST_DAY = datetime(1980, 1, 1, tzinfo=UTC)  # where ZIP's calendar begins


@contextmanager
def name_damage(uri: str) -> Iterator[None]:
    """Turn what zipfile raises on bytes that are no proper archive into a `ParseError` that names it."""
    try:
        yield
    except _DAMAGE as error:
        raise ParseError(f"{uri} is damaged: {error}", hint="copy or download it again") from error


@contextmanager
def open_zip(file: BinaryIO, uri: str, limits: LimitSettings) -> Iterator[zipfile.ZipFile]:
    """Open an archive whose list of members is known to be short enough."""
    most = 2 * _CHUNK + limits.archive_entries * _DIRECTORY_ENTRY
    with name_damage(uri):
        archive = zipfile.ZipFile(cast("IO[bytes]", _Guarded(file, most)))
    with archive:
        if len(archive.filelist) > limits.archive_entries:
            raise ParserLimit(
                f"{uri} has more entries than limits.archive_entries allows ({limits.archive_entries})",
                hint="unpack it and ingest the folder, or raise the limit",
            )
        yield archive


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, uri: str) -> bytes:
    """Return the content of a member: never more than it declares, whatever its packed bytes would give."""
    with name_damage(uri), archive.open(info) as stream:
        parts = []
        while part := stream.read(_CHUNK):
            parts.append(part)
        return b"".join(parts)


def member_path(info: zipfile.ZipInfo) -> str:
    """Return the path inside the archive, with slashes."""
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
    """Return when a member was changed, if its archive says so; ZIP knows no time zone."""
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


class ArchiveTooLarge(ParserLimit):
    """More bytes than the settings allow."""

    code = "too_large"


def is_archive(content: bytes, name: str) -> bool:
    """Return whether this is a ZIP of files, and not a document that happens to be packed as one (DOCX, EPUB, …)."""
    return is_archive_file(io.BytesIO(content), name)


def is_archive_file(file: BinaryIO, name: str) -> bool:
    """Return the same for an open file, of which little is read."""
    head = file.read(4)
    file.seek(0)
    if not name.lower().endswith(".zip") or head not in _MAGIC:
        return False
    try:
        with open_zip(file, name, LimitSettings()) as archive:
            return _DOCUMENT_PARTS.isdisjoint(archive.namelist())
    except RagstoneError:
        return True  # opening it as an archive says what is wrong with it


def read_archive(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[Item | Failure]:
    """Yield the members of an archive, one at a time. `origin` says what the archive itself is known as."""
    return _ArchiveReader(limits).members(file, origin, nested=False)


def list_archive(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[str]:
    """Yield the external ids of an archive's own members; raises when it cannot be opened."""
    with open_zip(file, origin.uri, limits) as archive:
        for info in archive.infolist():
            if not _is_aside(info):
                yield _member_id(member_path(info), origin)


def read_messages(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[Item | Failure]:
    """Yield the messages of a mailbox; the failure of one that cannot be read as a mailbox names it."""
    for entry in read_mailbox(file, origin, limits):
        is_whole = isinstance(entry, Failure) and entry.uri == origin.uri
        yield replace(entry, external_id=origin.external_id) if is_whole else entry


def _is_aside(info: zipfile.ZipInfo) -> bool:
    """Return whether it is a folder, or what macOS puts beside files."""
    return info.orig_filename.endswith(("/", "\\")) or member_path(info).startswith("__MACOSX/")


@dataclass
class _ArchiveReader:
    """Reads one archive with those inside it: they share its bounds."""

    limits: LimitSettings
    entries: int = 0
    unpacked: int = 0

    def members(self, file: BinaryIO, origin: Item, nested: bool) -> Iterator[Item | Failure]:
        try:
            with open_zip(file, origin.uri, self.limits) as archive:
                self._admit(archive.infolist(), origin.uri)
                yield from self._each(archive, origin, nested)
        except RagstoneError as error:
            yield failure_of(origin.uri, error, external_id=origin.external_id)

    def _admit(self, infos: list[zipfile.ZipInfo], uri: str) -> None:
        self.entries += len(infos)
        self.unpacked += sum(info.file_size for info in infos)
        if self.entries > self.limits.archive_entries:
            raise ParserLimit(f"{uri} brings the archive to more than {self.limits.archive_entries} entries")
        if self.unpacked > self.limits.archive_mb * MEGABYTE:
            megabytes = self.unpacked // MEGABYTE
            limit = self.limits.archive_mb
            raise ArchiveTooLarge(f"{uri} would unpack to {megabytes} MB; limits.archive_mb allows {limit}")

    def _each(self, archive: zipfile.ZipFile, origin: Item, nested: bool) -> Iterator[Item | Failure]:
        seen: set[str] = set()
        for info in archive.infolist():
            path = member_path(info)
            if _is_aside(info):
                continue
            try:
                check_member(info, origin.uri)
                if not is_document(path):
                    if is_skipped(path):
                        yield report_skipped(f"{origin.uri}!/{own_name(path)}")
                    continue
                if path in seen:
                    raise InputError(f"{origin.uri} holds {printable(path)} twice; the first one counts")
                seen.add(path)
                yield from self._member(archive, info, _member_item(path, info, origin), nested)
            except RagstoneError as error:
                yield failure_of(f"{origin.uri}!/{printable(path)}", error, external_id=_member_id(path, origin))

    def _member(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, member: Item, nested: bool
    ) -> Iterator[Item | Failure]:
        self._check_size(info, member.uri)
        if is_mailbox(member.uri):
            with name_damage(member.uri), archive.open(info) as stream:
                lines = io.BufferedReader(cast("io.RawIOBase", stream), MEGABYTE)
                yield from read_messages(lines, member, self.limits)
            return
        content = read_member(archive, info, member.uri)
        if not is_archive(content, member.uri):
            yield replace(member, content=content)
        elif nested:
            raise UnsupportedFormat(f"{member.uri} is an archive two archives deep; only one is opened")
        else:
            yield from self.members(io.BytesIO(content), member, nested=True)

    def _check_size(self, info: zipfile.ZipInfo, uri: str) -> None:
        if info.file_size > self.limits.file_mb * MEGABYTE and not is_mailbox(uri):
            megabytes = info.file_size / MEGABYTE
            raise ArchiveTooLarge(f"{uri} has {megabytes:.0f} MB; limits.file_mb allows {self.limits.file_mb}")
        if info.file_size > max(_FREE_RATIO_BYTES, info.compress_size * MAX_RATIO):
            raise ParserLimit(f"{uri} is packed more than {MAX_RATIO} times, as only bombs are")


def _member_id(path: str, origin: Item) -> str:
    return f"{origin.external_id}!/{own_name(path)}"


def _member_item(path: str, info: zipfile.ZipInfo, origin: Item) -> Item:
    modified = modified_at(info) or origin.modified_at or _FIRST_DAY
    metadata = {
        **origin.metadata,
        "filename": path.rsplit("/", 1)[-1],
        "modified_date": modified,
        "archive": origin.uri,
    }
    return replace(
        origin,
        external_id=_member_id(path, origin),
        uri=f"{origin.uri}!/{own_name(path)}",
        title="",
        metadata=metadata,
        modified_at=modified,
        media_type="",
    )
