"""ZIP archives: their members become documents, read in memory within bounds and never written anywhere."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import BinaryIO, cast

from ragstone.core.errors import InputError, ParserLimit, RagstoneError, UnsupportedFormat
from ragstone.core.types import Failure, Item, failure_of
from ragstone.ingest.parsers.text.cleaning import printable
from ragstone.ingest.sources.mailboxes import is_mailbox, read_mailbox
from ragstone.ingest.sources.walk import is_document, is_skipped, own_name, skipped
from ragstone.ingest.sources.zip_file import (
    check_member,
    damage_named,
    member_path,
    modified_at,
    open_zip,
    read_member,
)
from ragstone.settings.tree import LimitSettings

MEGABYTE = 1024 * 1024
MAX_RATIO = 200
"""Text packs 3 to 20 times, a sparse table 100 times; deflate ends at 1,032 times, where bombs are."""
_FREE_RATIO_BYTES = MEGABYTE
_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_DOCUMENT_PARTS = {"[Content_Types].xml", "mimetype"}
_FIRST_DAY = datetime(1980, 1, 1, tzinfo=UTC)  # where ZIP's calendar begins


class TooLarge(ParserLimit):
    """More bytes than the settings allow."""

    code = "too_large"


def is_archive(content: bytes, name: str) -> bool:
    """Whether this is a ZIP of files, and not a document that happens to be packed as one (DOCX, EPUB, …)."""
    return is_archive_file(io.BytesIO(content), name)


def is_archive_file(file: BinaryIO, name: str) -> bool:
    """The same of an open file, of which little is read."""
    head = file.read(4)
    file.seek(0)
    if not name.lower().endswith(".zip") or head not in _MAGIC:
        return False
    try:
        with open_zip(file, name, LimitSettings()) as archive:
            return _DOCUMENT_PARTS.isdisjoint(archive.namelist())
    except RagstoneError:
        return True  # opening it as an archive says what is wrong with it


def expand(item: Item, limits: LimitSettings) -> Iterator[Item | Failure]:
    """The documents inside an archive or a mailbox; the item itself when it is neither."""
    if isinstance(item.content, bytes) and is_archive(item.content, item.uri):
        yield from read_archive(io.BytesIO(item.content), replace(item, content=b""), limits)
    elif isinstance(item.content, bytes) and is_mailbox(item.uri):
        yield from read_mailbox(io.BytesIO(item.content), replace(item, content=b""), limits)
    else:
        yield item


def read_archive(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[Item | Failure]:
    """The members of an archive, one at a time. `origin` says what the archive itself is known as."""
    return _Reader(limits).members(file, origin, nested=False)


def list_archive(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[str]:
    """The external ids of an archive's own members; raises when it cannot be opened."""
    with open_zip(file, origin.uri, limits) as archive:
        for info in archive.infolist():
            if not _is_aside(info):
                yield f"{origin.external_id}!/{own_name(member_path(info))}"


def _is_aside(info: zipfile.ZipInfo) -> bool:
    """Whether it is a folder, or what macOS puts beside files."""
    return info.orig_filename.endswith(("/", "\\")) or member_path(info).startswith("__MACOSX/")


@dataclass
class _Reader:
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
            yield failure_of(origin.uri, error)

    def _admit(self, infos: list[zipfile.ZipInfo], uri: str) -> None:
        self.entries += len(infos)
        self.unpacked += sum(info.file_size for info in infos)
        if self.entries > self.limits.archive_entries:
            raise ParserLimit(f"{uri} brings the archive to more than {self.limits.archive_entries} entries")
        if self.unpacked > self.limits.archive_mb * MEGABYTE:
            megabytes = self.unpacked // MEGABYTE
            limit = self.limits.archive_mb
            raise TooLarge(f"{uri} would unpack to {megabytes} MB; limits.archive_mb allows {limit}")

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
                        yield skipped(f"{origin.uri}!/{own_name(path)}")
                    continue
                if path in seen:
                    raise InputError(f"{origin.uri} holds {printable(path)} twice; the first one counts")
                seen.add(path)
                yield from self._member(archive, info, _known_as(path, info, origin), nested)
            except RagstoneError as error:
                yield failure_of(f"{origin.uri}!/{printable(path)}", error)

    def _member(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, member: Item, nested: bool
    ) -> Iterator[Item | Failure]:
        self._check_size(info, member.uri)
        if is_mailbox(member.uri):
            with damage_named(member.uri), archive.open(info) as stream:
                lines = io.BufferedReader(cast("io.RawIOBase", stream), MEGABYTE)
                yield from read_mailbox(lines, member, self.limits)
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
            raise TooLarge(f"{uri} has {megabytes:.0f} MB; limits.file_mb allows {self.limits.file_mb}")
        if info.file_size > max(_FREE_RATIO_BYTES, info.compress_size * MAX_RATIO):
            raise ParserLimit(f"{uri} is packed more than {MAX_RATIO} times, as only bombs are")


def _known_as(path: str, info: zipfile.ZipInfo, origin: Item) -> Item:
    modified = modified_at(info) or origin.modified_at or _FIRST_DAY
    metadata = {
        **origin.metadata,
        "filename": path.rsplit("/", 1)[-1],
        "modified_date": modified,
        "archive": origin.uri,
    }
    return replace(
        origin,
        external_id=f"{origin.external_id}!/{own_name(path)}",
        uri=f"{origin.uri}!/{own_name(path)}",
        title="",
        metadata=metadata,
        modified_at=modified,
        media_type="",
    )
