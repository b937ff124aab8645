"""What goes between the pool and its children: length-prefixed frames of JSON and of raw bytes, never code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ragstone.core.errors import EmptyDocument, ParseError, ParserLimit, RagstoneError, UnsupportedFormat
from ragstone.core.types import Block, Parsed
from ragstone.ingest.parsers.draft import MAX_BLOCKS, broken_rules

Read = Callable[[int], bytes | bytearray]

MAX_TEXT = 64 * 1024 * 1024
MAX_HEAD = 1024 * 1024
BLOCKS_PER_FRAME = 2000
OUT_OF_MEMORY = 77
"""The exit code of a child that had no memory left even to say so."""
_LENGTH = 8
_ERRORS: dict[str, type[ParseError]] = {
    error.code: error for error in (ParseError, UnsupportedFormat, EmptyDocument, ParserLimit)
}


def text_allowance(size: int) -> int:
    """How many bytes of text a file of this size may give: beyond it is a bomb, not a document."""
    return min(MAX_TEXT, 8 * 1024 * 1024 + 50 * size)


def frame(data: bytes) -> bytes:
    """A frame as it goes over the pipe."""
    return len(data).to_bytes(_LENGTH, "big") + data


def read_frame(read: Read, limit: int) -> bytes | bytearray:
    """The next frame; `ValueError` when it says it is larger than it may be."""
    length = int.from_bytes(read(_LENGTH), "big")
    if length > limit:
        raise ValueError(f"a frame of {length} bytes, where {limit} are allowed")
    return read(length)


def encode_parsed(parsed: Parsed, size: int, name: str) -> Iterator[bytes]:
    """The frames of a document: a head, its text, its blocks in slices."""
    text = parsed.text.encode("utf-8")
    if len(text) > text_allowance(size):
        raise ParserLimit(
            f"{name} gives {len(text):,} bytes of text from {size:,}, more than is allowed",
            hint="split the file",
        )
    head = {
        "title": parsed.title,
        "media_type": parsed.media_type,
        "metadata": dict(parsed.metadata),
        "warnings": list(parsed.warnings),
        "blocks": len(parsed.blocks),
    }
    yield frame(json.dumps(head).encode())
    yield frame(text)
    for first in range(0, len(parsed.blocks), BLOCKS_PER_FRAME):
        rows = [
            (block.kind, block.start, block.end, block.level, block.label, block.page)
            for block in parsed.blocks[first : first + BLOCKS_PER_FRAME]
        ]
        yield frame(json.dumps(rows).encode())


def encode_error(error: RagstoneError) -> bytes:
    """The one frame of a failure."""
    return frame(
        json.dumps({"error": {"code": error.code, "message": str(error), "hint": error.hint}}).encode()
    )


def decode_reply(read: Read, size: int) -> Parsed:
    """Read a document, or raise the error it ended in. Small frames: no step holds the interpreter for long."""
    head = json.loads(read_frame(read, MAX_HEAD))
    if "error" in head:
        error = head["error"]
        raise _ERRORS.get(error["code"], ParseError)(str(error["message"]), hint=str(error["hint"]))
    text = read_frame(read, text_allowance(size)).decode("utf-8")
    if not 0 < head["blocks"] <= MAX_BLOCKS:
        raise ValueError(f"{head['blocks']} blocks")
    blocks: list[Block] = []
    while len(blocks) < head["blocks"]:
        rows: list[list[Any]] = json.loads(read_frame(read, MAX_TEXT))
        blocks += [Block(*row) for row in rows]
    parsed = Parsed(
        text, tuple(blocks), head["title"], head["media_type"], head["metadata"], tuple(head["warnings"])
    )
    if problems := broken_rules(parsed):
        raise ValueError(problems[0])
    return parsed
