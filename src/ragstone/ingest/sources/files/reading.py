"""Reading a file that was found: one document, or all those inside an archive or a mailbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import BinaryIO

from ragstone.core.clock import current_read_time
from ragstone.core.errors import RagstoneError
from ragstone.core.types import SKIPPED, Failure, Item
from ragstone.ingest.sources.files.archives import MEGABYTE, is_archive_file, list_archive, read_archive
from ragstone.ingest.sources.files.walk import FoundFile
from ragstone.ingest.sources.mail.mailboxes import is_mailbox, read_mailbox
from ragstone.settings.tree import LimitSettings


def is_container(name: str) -> bool:
    """Return whether a file of this name holds documents rather than being one, if it is what its name says."""
    return is_mailbox(name) or name.lower().endswith(".zip")


def read_documents(found: FoundFile, origin: Item, limits: LimitSettings, max_bytes: int) -> Iterator[Item | Failure]:
    """Yield the documents of a file, under the name that `origin` gives it; a container is never read as a whole."""
    uri = origin.uri
    origin = replace(origin, read=current_read_time())
    try:
        if not found.path.is_file():
            yield Failure(uri, "invalid_input", f"{uri} is not a regular file")
            return
        facts = found.path.stat()
        origin = _add_dates(found, origin, facts)
        if is_container(uri):
            with found.path.open("rb") as file:
                if inside := _inside(file, origin, limits):
                    yield from inside
                    return
        if facts.st_size > max_bytes:
            megabytes = facts.st_size / MEGABYTE
            limit = max_bytes // MEGABYTE
            yield Failure(uri, "too_large", f"{uri} has {megabytes:.0f} MB; limits.file_mb allows {limit}")
            return
        yield replace(origin, content=found.path.read_bytes())
    except OSError as error:
        yield Failure(uri, "unreadable", f"{uri} cannot be read: {error.strerror or error}")


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


def _add_dates(found: FoundFile, origin: Item, facts: os.stat_result) -> Item:
    modified = datetime.fromtimestamp(facts.st_mtime, UTC).replace(microsecond=0)
    metadata = {**origin.metadata, "filename": found.relative.rpartition("/")[2], "modified_date": modified}
    return replace(origin, metadata=metadata, modified_at=modified)


def _inside(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[Item | Failure] | None:
    if is_mailbox(origin.uri):
        return read_mailbox(file, origin, limits)
    return read_archive(file, origin, limits) if is_archive_file(file, origin.uri) else None
