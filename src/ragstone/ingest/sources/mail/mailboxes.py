"""Mailbox files: messages one after the other, told apart by lines that begin with `From `."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from ragstone.core.errors import ParseError, SourceError
from ragstone.core.ids import content_hash
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.ingest.parsers.mail.headers import Envelope, read_envelope, read_message
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.settings.base import SettingsModel
from ragstone.settings.tree import LimitSettings

PIECE = 64 * 1024
"""The most of a line that is read at once: a line without an end must not fill the memory."""
_SEPARATOR = re.compile(rb"From (?:\S{0,200}\s*$|.*\d:\d\d.*\d{4}|.*\d{4}.*\d:\d\d)")
_HEADER = re.compile(rb"[!-9;-~]{1,100}:|>From ")
_QUOTED = re.compile(rb">+From ")
_BLANK = (b"\n", b"\r\n")
MEDIA_TYPE = "message/rfc822"
_MAX_HEAD = 256 * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n")
PAGE_ITEMS = 32
PAGE_BYTES = 8 * 1024 * 1024
SAID_BYTES = 256 * 1024 * 1024
"""So often an empty page says that the names of a huge mailbox are still being read."""
_MARK_BYTES = 1024


@dataclass(frozen=True, slots=True)
class MboxMessage:
    """A message and where it stands in its file."""

    start: int
    end: int
    content: bytes | None
    """None for one that is larger than allowed."""


def read_mbox(file: BinaryIO, max_bytes: int, start: int = 0) -> Iterator[MboxMessage]:
    """Yield the messages from here on, one in memory at a time; none when it is no mailbox. Nothing is sought."""
    message: _MessageBuilder | None = None
    position = start
    for piece, separates in _pieces(file):
        if separates:
            if message is not None and message.size:
                yield message.finish(position)
            message = _MessageBuilder(position, max_bytes)
        elif message is not None:
            message.add(piece)
        position += len(piece)
    if message is not None and message.size:
        yield message.finish(position)


class _MessageBuilder:
    def __init__(self, start: int, max_bytes: int) -> None:
        self.start = start
        self.size = 0
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._max_bytes:
            self._pieces.clear()
        elif _QUOTED.match(piece):
            self._pieces.append(piece[1:])
        else:
            self._pieces.append(piece)

    def finish(self, end: int) -> MboxMessage:
        if self._pieces and self._pieces[-1] in _BLANK:
            self._pieces.pop()  # it belongs to the separator behind it
        content = None if self.size > self._max_bytes else b"".join(self._pieces)
        return MboxMessage(self.start, end, content)


def _pieces(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield lines, long ones in parts, and whether each begins a message.

    A separator stands behind a blank line and before a header; other lines that begin so are text.
    """
    held = b""
    after_blank = begins_line = True
    while piece := file.readline(PIECE):
        if held:
            yield held, bool(_HEADER.match(piece))
            held, after_blank = b"", False
        if begins_line and after_blank and _SEPARATOR.match(piece[:300]):
            held = piece
        else:
            yield piece, False
            after_blank = begins_line and piece in _BLANK
        begins_line = piece.endswith(b"\n")
    if held:
        yield held, True


def read_head(content: bytes) -> Envelope:
    """Return the headers of a message without reading its parts; an empty envelope when it has none."""
    head = content[:_MAX_HEAD]
    end = _HEAD_END.search(head)
    try:
        return read_envelope(read_message(head[: end.end()] if end else head, ""))
    except ParseError:
        return Envelope()


class MessageNames:
    """The external ids of the messages of a mailbox.

    Anyone may write any Message-ID into a mail: the first message with it has it, and one with other content
    gets a name of its own. The `#` is ours, for such names and for attachments.
    """

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}

    def of(self, envelope: Envelope, content: bytes) -> str:
        """Return the Message-ID, or else the content's own name."""
        name = (envelope.message_id or f"sha256:{content_hash(content)}").replace("#", "%23")
        hashed = content_hash(content)[:32]
        return name if self._taken.setdefault(name, hashed) == hashed else f"{name}#{hashed}"


def is_mailbox(name: str) -> bool:
    """Return whether a file of this name is a mailbox."""
    return name.lower().endswith(".mbox")


def read_mailbox(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[Item | Failure]:
    """Yield the messages of a mailbox of any size, one in memory at a time. `origin` says what it is known as.

    A message that stands in it twice is one document; two that only share their Message-ID are two.
    """
    names, seen = MessageNames(), set[str]()
    found = False
    for message in read_mbox(file, limits.file_mb * 1024 * 1024):
        found = True
        if message.content is None:
            where = f"the message at byte {message.start:,} of {origin.uri}"
            error = f"{where} is larger than limits.file_mb allows"
            yield Failure(f"{origin.uri}!/{message.start}", "too_large", error)
        else:
            envelope = read_head(message.content)
            name = names.of(envelope, message.content)
            if name not in seen:
                seen.add(name)
                yield _message(name, envelope, message.content, origin)
    if not found and file.tell():
        error = f"{origin.uri} is not a mailbox: no message in it begins with a line 'From …'"
        yield Failure(origin.uri, ParseError.code, error)


def _message(name: str, envelope: Envelope, content: bytes, origin: Item) -> Item:
    metadata: dict[str, Json] = {**origin.metadata, "source_type": "email", "mailbox": origin.uri}
    metadata.pop("modified_date", None)  # the mailbox's, which changes with every mail that comes
    metadata["source"] = "gmail" if envelope.from_gmail else origin.uri
    return replace(
        origin,
        external_id=f"{origin.external_id}!/{name}",
        uri=f"{origin.uri}!/{name}.eml",  # so that a Message-ID from example.md is no Markdown
        content=content,
        title="",
        metadata=metadata,
        modified_at=envelope.date,
        media_type=MEDIA_TYPE,
    )


class MboxConfig(SettingsModel):
    path: Path


@dataclass(frozen=True, slots=True)
class _FilePlace:
    """The point from which reading continues."""

    offset: int
    last: int
    """The start of the last message: it is read again when the file went on in the middle of it."""
    mark: str
    """Tells whether the file up to here is still the same."""
    unread: tuple[tuple[int, int], ...] = ()
    """The starts and ends of messages that were too large."""
    listing: bool = False
    """True if a list of all messages is still to be given."""

    def json(self) -> Json:
        place: dict[str, Json] = {"offset": self.offset, "last": self.last, "mark": self.mark}
        if self.unread:
            place["unread"] = [list(span) for span in self.unread]
        return place | {"listing": True} if self.listing else place


class MboxSource(StatelessSource):
    """The messages of one mailbox file."""

    def __init__(self, config: MboxConfig, name: str, context: SourceContext) -> None:
        self._path = config.path
        self._name = name
        self._max_bytes = context.limits.file_mb * 1024 * 1024

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield what was appended since `cursor`; everything, with a list of it, without one or of a rewritten file."""
        pages = self._pages(_place(cursor))
        while (page := await asyncio.to_thread(next, pages, None)) is not None:
            yield page

    def _pages(self, place: _FilePlace | None) -> Iterator[Page]:
        try:
            with self._path.open("rb") as file:
                start = self._resume_offset(file, place)
                listed: set[str] | None = set() if start == 0 or (place and place.listing) else None
                names = MessageNames()
                unread = [span for span in place.unread if span[1] <= start] if place else []
                if place is not None:
                    if unread:
                        yield Page(tuple(self._too_large(first) for first, _ in unread), place.json())
                    yield from (Page((), place.json()) for _ in self._earlier(file, start, names, listed))
                file.seek(start)
                yield from self._read(file, start, listed, names, unread)
        except OSError as problem:
            raise SourceError(
                f"the mailbox {self._path} cannot be read: {problem.strerror or problem}",
                hint="check its path and who may read it; nothing was removed",
            ) from problem

    def _earlier(self, file: BinaryIO, end: int, names: MessageNames, listed: set[str] | None) -> Iterator[None]:
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
                name = names.of(read_head(message.content), message.content)
                if listed is not None:
                    listed.add(name)
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
                reached = _behind(file, message, unread)
                yield Page(tuple(entries), replace(reached, listing=listed is not None).json())
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
        if following.startswith(b"From ") or not (following or place.listing):
            return place.offset
        # The last message has grown, or the list is all that is left to give and stands behind a message.
        return place.last


def _place(cursor: Json) -> _FilePlace | None:
    match cursor:
        case {"offset": int(offset), "last": int(last), "mark": str(mark)}:
            unread = tuple((start, end) for start, end in cursor.get("unread", ()))
            return _FilePlace(offset, last, mark, unread, listing=bool(cursor.get("listing")))
    return None


def _behind(file: BinaryIO, message: MboxMessage, unread: Iterable[tuple[int, int]]) -> _FilePlace:
    return _FilePlace(message.end, message.start, _mark(file, message.end), tuple(unread))


def _mark(file: BinaryIO, offset: int) -> str:
    before = os.pread(file.fileno(), min(offset, _MARK_BYTES), max(0, offset - _MARK_BYTES))
    return content_hash(before)[:32] if len(before) == min(offset, _MARK_BYTES) else ""
