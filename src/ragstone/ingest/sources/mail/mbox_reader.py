"""Mailbox files: messages one after the other, told apart by lines that begin with `From `."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

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
