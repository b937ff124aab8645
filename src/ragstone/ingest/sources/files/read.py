"""Read the files that were named or found: one document, or all those inside an archive or a mailbox."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ragstone.core.clock import current_read_time
from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.types import SKIPPED, Failure, Item
from ragstone.ingest.parsers.draft import KINDS
from ragstone.ingest.parsers.mail.shape import MAX_HEAD, begins_mailbox
from ragstone.ingest.sources.files.archives import MEGABYTE, is_archive_file, list_archive, read_archive, read_messages
from ragstone.ingest.sources.files.owners import Owners, report_owned
from ragstone.ingest.sources.files.walk import FoundFile, as_text, find, is_document, own_name, real
from ragstone.ingest.sources.mail.mailboxes import is_mailbox
from ragstone.ingest.work import SourceListing
from ragstone.settings.tree import LimitSettings

SOURCE = "files"
SHORT_BYTES = 16 * 1024
"""Files up to this size are read first, in the order of their paths."""
LAST_CLASS = 64


async def scan_paths(
    paths: Sequence[str | Path], limits: LimitSettings, owners: Owners | None = None
) -> tuple[Iterator[Item | Failure], list[SourceListing]]:
    """Return the documents at these paths but for those of `owners`, and a listing of each path that is a folder."""
    named = [Path(path) for path in paths]
    items = read_files(named, limits, owners)
    return items, await asyncio.to_thread(folder_listings, named, limits)


def read_files(
    paths: Sequence[Path], limits: LimitSettings | None = None, owners: Owners | None = None
) -> Iterator[Item | Failure]:
    """Yield each file named, and each document under each folder named, each once, short files first.

    A file is known by its absolute path, so that naming it alone or through its folder is the same document.
    Archives and mailboxes give the documents inside them, within `limits`. Hidden files, and links that lead
    out of a folder, are passed over.
    """
    for path in paths:
        if not path.exists():
            rest = "; nothing was ingested" if len(paths) > 1 else ""  # only an ingest names several
            raise InputError(f"{path} does not exist", hint=f"check the spelling{rest}")
    return _read_each(paths, limits or LimitSettings(), owners or {})


def _read_each(paths: Sequence[Path], limits: LimitSettings, owners: Owners) -> Iterator[Item | Failure]:
    # Stable: files of about the same size stay in the order of their paths.
    for found in sorted(_each_once(paths), key=_size_class):
        if isinstance(found, Failure):
            yield found
        elif owner := owners.get((origin := origin_of(found)).external_id):
            yield report_owned(found.shown, owner)
        else:
            yield from read_documents(found, origin, limits)


def _size_class(found: FoundFile | Failure) -> int:
    """Return a number that grows by one as the file gets four times as long; failures come last."""
    if isinstance(found, Failure):
        return LAST_CLASS
    return max(_size(found), SHORT_BYTES).bit_length() // 2


def _size(found: FoundFile) -> int:
    try:
        return found.path.stat().st_size
    except OSError:
        return 0  # reading it says what is wrong


def _each_once(paths: Sequence[Path]) -> Iterator[FoundFile | Failure]:
    seen: set[Path] = set()
    for path in paths:
        for found in find(path):
            if isinstance(found, Failure):
                yield found
            elif (place := real(found.path)) not in seen:
                # A link beside the file it leads to would be the same document under two places.
                seen.add(place)
                yield found


def origin_of(found: FoundFile) -> Item:
    """Return the item of a file that is known by its absolute path, without its content."""
    external_id = own_name(as_text(real(found.path).as_posix()))
    return Item(SOURCE, external_id, found.shown, b"", metadata={"source_type": SOURCE}, media_type=found.media_type)


def survey_files(paths: Sequence[Path], limits: LimitSettings | None = None) -> tuple[int, int]:
    """Return about how many documents `read_files` gives, and the size of their files.

    The messages of a mailbox only show when it is read.
    """
    documents = size = 0
    for found in _each_once(paths):
        documents += 1 if isinstance(found, Failure) else _count_inside(found, limits or LimitSettings())
        size += 0 if isinstance(found, Failure) else _size(found)
    return documents, size


def _count_inside(found: FoundFile, limits: LimitSettings) -> int:
    try:
        inside = list(list_documents(found, Item(SOURCE, found.relative, found.shown, b""), limits))
    except (OSError, RagstoneError):
        return 1  # reading it says what is wrong
    return sum(is_document(member.partition("!/")[2]) for member in inside) or 1


def is_container(name: str) -> bool:
    """Return whether a file of this name holds documents rather than being one, if it is what its name says."""
    return name.lower().endswith((".mbox", ".zip"))


def read_documents(found: FoundFile, origin: Item, limits: LimitSettings) -> Iterator[Item | Failure]:
    """Yield the documents of a file, under the name that `origin` gives it; a container is never read as a whole."""
    uri, external_id = origin.uri, origin.external_id
    origin = replace(origin, read=current_read_time())
    try:
        if not found.path.is_file():
            yield Failure(uri, "invalid_input", f"{uri} {_tell_kind(found.path)}", external_id=external_id)
            return
        facts = found.path.stat()
        origin = _add_dates(found, origin, facts)
        if is_container(uri) or _is_unnamed_mailbox(found):
            with found.path.open("rb") as file:
                if inside := read_container(file, origin, limits):
                    yield from inside
                    return
        if facts.st_size > limits.file_mb * MEGABYTE:
            megabytes = facts.st_size / MEGABYTE
            error = f"{uri} has {megabytes:.0f} MB; limits.file_mb allows {limits.file_mb}"
            yield Failure(uri, "too_large", error, external_id=external_id)
            return
        yield replace(origin, content=found.path.read_bytes())
    except OSError as error:
        reason = f"{uri} cannot be read: {error.strerror or error}"
        yield Failure(uri, "unreadable", reason, external_id=external_id)


def _tell_kind(path: Path) -> str:
    """Return what is at a path that is no file."""
    if path.is_symlink():
        return "is a link that leads to no file"
    return "is not a regular file" if path.exists() else "is not there any more: it was removed or renamed just now"


def _add_dates(found: FoundFile, origin: Item, facts: os.stat_result) -> Item:
    modified = datetime.fromtimestamp(facts.st_mtime, UTC).replace(microsecond=0)
    metadata = {**origin.metadata, "filename": found.relative.rpartition("/")[2], "modified_date": modified}
    return replace(origin, metadata=metadata, modified_at=modified)


def read_container(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[Item | Failure] | None:
    """Return the documents inside an open file; None for one that only has the name of an archive."""
    if is_mailbox(origin.uri) or not is_container(origin.uri):
        return read_messages(file, origin, limits)
    return read_archive(file, origin, limits) if is_archive_file(file, origin.uri) else None


def _is_unnamed_mailbox(found: FoundFile) -> bool:
    """Return whether a file is a mailbox that its name does not show, such as `Inbox`, by its first lines."""
    if found.media_type or PurePosixPath(found.shown).suffix.lower() in KINDS:
        return False
    with found.path.open("rb") as file:
        return begins_mailbox(file.read(MAX_HEAD))


def expand(item: Item, limits: LimitSettings) -> Iterator[Item | Failure]:
    """Yield the documents inside an archive or a mailbox; the item itself when it is neither."""
    inside = None
    if isinstance(item.content, bytes) and is_container(item.uri):
        inside = read_container(io.BytesIO(item.content), replace(item, content=b""), limits)
    yield from (item,) if inside is None else inside


def folder_listings(paths: Sequence[Path], limits: LimitSettings) -> list[SourceListing]:
    """Return one listing per folder that could be seen whole; a file named by itself says nothing about others."""
    began = current_read_time()
    listed = ((path, list_ids(find(path), origin_of, limits)) for path in paths if path.is_dir())
    return [
        SourceListing(
            SOURCE,
            ids,
            under=own_name(as_text(real(path).as_posix()).rstrip("/") + "/"),
            is_there=os.path.lexists,
            read=began,
        )
        for path, ids in listed
        if ids is not None
    ]


def list_ids(
    entries: Iterable[FoundFile | Failure], known_as: Callable[[FoundFile], Item], limits: LimitSettings
) -> frozenset[str] | None:
    """Return the external ids of files and of members of archives; None when a part of them cannot be seen.

    What is deeper inside, messages and archives in archives, only shows when it is read.
    """
    ids: set[str] = set()
    try:
        for entry in entries:
            if isinstance(entry, Failure):
                if entry.code != SKIPPED:
                    return None
                continue
            origin = known_as(entry)
            ids.add(origin.external_id)
            ids.update(list_documents(entry, origin, limits))
    except (OSError, RagstoneError):
        return None  # reading it says what is wrong
    return frozenset(ids)


def list_documents(found: FoundFile, origin: Item, limits: LimitSettings) -> Iterator[str]:
    """Yield the external ids of what an archive holds; none for other files."""
    if found.shown.lower().endswith(".zip") and found.path.is_file():
        with found.path.open("rb") as file:
            if is_archive_file(file, found.shown):
                yield from list_archive(file, origin, limits)
