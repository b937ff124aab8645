"""Mailbox files: messages one after the other, told apart by lines that begin with `From `."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from ragstone.core.errors import ParseError
from ragstone.core.ids import content_hash
from ragstone.core.types import Failure, Item, Json
from ragstone.ingest.parsers.mail.headers import Envelope, read_envelope, read_message
from ragstone.settings.tree import LimitSettings

PIECE = 64 * 1024
"""How much of a line is looked at once: a line without an end must not fill the memory."""
_SEPARATOR = re.compile(rb"From (?:\S{0,200}\s*$|.*\d:\d\d.*\d{4}|.*\d{4}.*\d:\d\d)")
_HEADER = re.compile(rb"[!-9;-~]{1,100}:|>From ")
_QUOTED = re.compile(rb">+From ")
_BLANK = (b"\n", b"\r\n")


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
    """Lines, long ones in parts, and whether each begins a message.

    A separator stands behind a blank line and before a header; other lines that begin so are somebody's words.
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


MEDIA_TYPE = "message/rfc822"
_MAX_HEAD = 256 * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n")


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
    if envelope.from_gmail:
        metadata["source"] = "gmail"
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
