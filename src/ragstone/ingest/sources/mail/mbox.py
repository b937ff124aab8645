"""A mailbox file, such as mail programs and Google Takeout write: read once, then only what was appended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ragstone.core.errors import SourceError
from ragstone.core.ids import content_hash
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.ingest.sources.config import SourceContext
from ragstone.ingest.sources.mail.mailboxes import MEDIA_TYPE, MboxMessage, MessageNames, read_head, read_mbox
from ragstone.settings.base import SettingsModel

PAGE_ITEMS = 32
PAGE_BYTES = 8 * 1024 * 1024
SAID_BYTES = 256 * 1024 * 1024
"""So often an empty page says that the names of a huge mailbox are still being read."""
_MARK_BYTES = 1024


class MboxConfig(SettingsModel):
    path: Path


@dataclass(frozen=True, slots=True)
class _FilePlace:
    """The point from which reading continues."""

    offset: int
    last: int
    """Where the last message begins: it is read again when the file went on in the middle of it."""
    mark: str
    """Tells whether the file up to here is still the same."""
    unread: tuple[tuple[int, int], ...] = ()
    """Where messages that were too large begin and end."""

    def json(self) -> Json:
        place: dict[str, Json] = {"offset": self.offset, "last": self.last, "mark": self.mark}
        return place | {"unread": [list(span) for span in self.unread]} if self.unread else place


class MboxSource:
    """The messages of one mailbox file."""

    def __init__(self, config: MboxConfig, name: str, context: SourceContext) -> None:
        self._path = config.path
        self._name = name
        self._max_bytes = context.limits.file_mb * 1024 * 1024

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield what was appended since `cursor`; everything, with a list of it, when the file was rewritten."""
        pages = self._pages(_place(cursor))
        while (page := await asyncio.to_thread(next, pages, None)) is not None:
            yield page

    async def close(self) -> None:
        """Nothing is held open between runs."""

    def _pages(self, place: _FilePlace | None) -> Iterator[Page]:
        try:
            with self._path.open("rb") as file:
                start = self._resume_offset(file, place)
                listed: set[str] | None = set() if place is not None and start == 0 else None
                names = MessageNames()
                unread = [span for span in place.unread if span[1] <= start] if place else []
                if place is not None:
                    if unread:
                        yield Page(tuple(self._too_large(first) for first, _ in unread), place.json())
                    yield from (Page((), place.json()) for _ in self._earlier(file, start, names))
                file.seek(start)
                yield from self._read(file, start, listed, names, unread)
        except OSError as problem:
            raise SourceError(
                f"the mailbox {self._path} cannot be read: {problem.strerror or problem}",
                hint="check its path and who may read it; nothing was removed",
            ) from problem

    def _earlier(self, file: BinaryIO, end: int, names: MessageNames) -> Iterator[None]:
        """Learn the names that are taken before `end`, and say now and then that it goes on.

        They are read again, as a list of them would outgrow the cursor.
        """
        if end >= os.fstat(file.fileno()).st_size:
            return
        file.seek(0)
        said = 0
        for message in read_mbox(file, self._max_bytes):
            if message.start >= end:
                return
            if message.content is not None:
                names.of(read_head(message.content), message.content)
            if message.end - said >= SAID_BYTES:
                said = message.end
                yield

    def _read(
        self, file: BinaryIO, start: int, listed: set[str] | None, names: MessageNames, unread: list[tuple[int, int]]
    ) -> Iterator[Page]:
        entries: list[Item | Failure] = []
        size = 0
        message: MboxMessage | None = None
        for message in read_mbox(file, self._max_bytes, start):
            entry = self._entry(message, names)
            entries.append(entry)
            size += len(message.content or b"")
            if isinstance(entry, Failure):
                unread.append((message.start, message.end))
            elif listed is not None:
                listed.add(entry.external_id)
            if len(entries) == PAGE_ITEMS or size >= PAGE_BYTES:
                yield Page(tuple(entries), _behind(file, message, unread).json())
                entries, size = [], 0
        if message is None and start == 0:
            raise SourceError(
                f"{self._path} is not a mailbox: no message in it begins with a line 'From …'",
                hint="export the mail in mbox format; nothing was removed",
            )
        if message is not None and (entries or listed is not None):
            everything = None if listed is None else frozenset(listed)
            yield Page(tuple(entries), _behind(file, message, unread).json(), listed=everything)

    def _entry(self, message: MboxMessage, names: MessageNames) -> Item | Failure:
        if message.content is None:
            return self._too_large(message.start)
        envelope = read_head(message.content)
        identity = names.of(envelope, message.content)
        # In its brackets no Message-ID of a host such as harbour.md looks like a file's name.
        shown = f"<{identity}>" if envelope.message_id else identity
        metadata: dict[str, Json] = {"source_type": "email"}
        if envelope.from_gmail:
            metadata["source"] = "gmail"
        return Item(
            source=self._name,
            external_id=identity,
            uri=f"mbox:{self._path.name}#{shown}",
            content=message.content,
            metadata=metadata,
            modified_at=envelope.date,
            media_type=MEDIA_TYPE,
        )

    def _too_large(self, start: int) -> Failure:
        return Failure(
            f"mbox:{self._path.name}#{start}",
            "too_large",
            f"the message at byte {start:,} of {self._path.name} is larger than limits.file_mb allows",
        )

    def _resume_offset(self, file: BinaryIO, place: _FilePlace | None) -> int:
        """Return the offset to read from: the place, its last message, or the beginning."""
        if place is None or _mark(file, place.offset) != place.mark:
            return 0
        if any(end - start <= self._max_bytes for start, end in place.unread):
            return 0  # more is allowed by now
        following = os.pread(file.fileno(), 300, place.offset).lstrip(b"\r\n")
        return place.offset if not following or following.startswith(b"From ") else place.last


def _place(cursor: Json) -> _FilePlace | None:
    match cursor:
        case {"offset": int(offset), "last": int(last), "mark": str(mark)}:
            return _FilePlace(offset, last, mark, tuple((start, end) for start, end in cursor.get("unread", ())))
    return None


def _behind(file: BinaryIO, message: MboxMessage, unread: Iterable[tuple[int, int]]) -> _FilePlace:
    return _FilePlace(message.end, message.start, _mark(file, message.end), tuple(unread))


def _mark(file: BinaryIO, offset: int) -> str:
    before = os.pread(file.fileno(), min(offset, _MARK_BYTES), max(0, offset - _MARK_BYTES))
    return content_hash(before)[:32] if len(before) == min(offset, _MARK_BYTES) else ""
