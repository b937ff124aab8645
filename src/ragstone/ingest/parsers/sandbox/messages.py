"""Messages between the pool and its children: length-prefixed frames of JSON and of raw bytes, never code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ragstone.core.batches import batched
from ragstone.core.errors import EmptyDocument, NoTextSeen, ParseError, ParserLimit, RagstoneError, UnsupportedFormat
from ragstone.core.types import Attachment, Block, Parsed
from ragstone.ingest.parsers.draft import MAX_BLOCKS, broken_rules

Read = Callable[[int], bytes | bytearray]

MAX_TEXT = 64 * 1024 * 1024
MAX_HEAD = 1024 * 1024
BLOCKS_PER_FRAME = 2000
OUT_OF_MEMORY = 77
"""The exit code of a child that had no memory left even to say so."""
MAX_ATTACHMENTS = 1000
_LENGTH = 8
_ERRORS: dict[str, type[ParseError]] = {
    error.code: error for error in (ParseError, UnsupportedFormat, EmptyDocument, NoTextSeen, ParserLimit)
}


def text_allowance(size: int) -> int:
    """Return how many bytes of text a file of this size may give; a file that gives more is a bomb."""
    return min(MAX_TEXT, 8 * 1024 * 1024 + 50 * size)


def attachment_allowance(size: int) -> int:
    """Return how many bytes the attachments of a file of this size may have together: they are part of it."""
    return size + 64 * 1024


def frame(data: bytes) -> bytes:
    """Return a frame as it goes over the pipe."""
    return len(data).to_bytes(_LENGTH, "big") + data


def read_frame(read: Read, limit: int) -> bytes | bytearray:
    """Return the next frame; `ValueError` when it says it is larger than it may be."""
    length = int.from_bytes(read(_LENGTH), "big")
    if length > limit:
        raise ValueError(f"a frame of {length} bytes, where {limit} are allowed")
    return read(length)


def encode_parsed(parsed: Parsed, size: int, name: str) -> Iterator[bytes]:
    """Yield the frames of a document: a head, its text, its blocks in slices, its attachments."""
    text = parsed.text.encode("utf-8")
    if len(text) > text_allowance(size):
        raise ParserLimit(
            f"{name} gives {len(text):,} bytes of text from {size:,}, more than is allowed", hint="split the file"
        )
    attached = sum(len(attachment.content) for attachment in parsed.attachments)
    if len(parsed.attachments) > MAX_ATTACHMENTS or attached > attachment_allowance(size):
        raise ParserLimit(
            f"{name} gives {len(parsed.attachments):,} attachments of {attached:,} bytes, more than is allowed",
            hint="take some of them out of the file",
        )
    head = {
        "title": parsed.title,
        "media_type": parsed.media_type,
        "metadata": dict(parsed.metadata),
        "warnings": list(parsed.warnings),
        "blocks": len(parsed.blocks),
        "attachments": [(attachment.name, attachment.media_type) for attachment in parsed.attachments],
        "next_page": parsed.next_page,
    }
    yield frame(json.dumps(head).encode())
    yield frame(text)
    for blocks in batched(parsed.blocks, BLOCKS_PER_FRAME):
        rows = [(block.kind, block.start, block.end, block.level, block.label, block.page) for block in blocks]
        yield frame(json.dumps(rows).encode())
    for attachment in parsed.attachments:
        yield frame(attachment.content)


def encode_error(error: RagstoneError) -> bytes:
    """Return the frame of a failure."""
    return frame(json.dumps({"error": {"code": error.code, "message": str(error), "hint": error.hint}}).encode())


def decode_reply(read: Read, size: int) -> Parsed:
    """Read a document, or raise the error it ended in. Small frames: no step holds the interpreter for long."""
    head = json.loads(read_frame(read, MAX_HEAD))
    if "error" in head:
        error = head["error"]
        raise _ERRORS.get(error["code"], ParseError)(str(error["message"]), hint=str(error["hint"]))
    text = read_frame(read, text_allowance(size)).decode("utf-8")
    if not 0 <= head["blocks"] <= MAX_BLOCKS:
        raise ValueError(f"{head['blocks']} blocks")
    blocks: list[Block] = []
    while len(blocks) < head["blocks"]:
        rows: list[list[Any]] = json.loads(read_frame(read, MAX_TEXT))
        blocks += [Block(*row) for row in rows]
    parsed = Parsed(
        text=text,
        blocks=tuple(blocks),
        title=head["title"],
        media_type=head["media_type"],
        metadata=head["metadata"],
        warnings=tuple(head["warnings"]),
        attachments=_read_attachments(read, head["attachments"], size),
        next_page=None if head["next_page"] is None else int(head["next_page"]),
    )
    if problems := broken_rules(parsed):
        raise ValueError(problems[0])
    return parsed


def _read_attachments(read: Read, names: list[list[str]], size: int) -> tuple[Attachment, ...]:
    if len(names) > MAX_ATTACHMENTS:
        raise ValueError(f"{len(names)} attachments")
    left = attachment_allowance(size)
    attachments = []
    for name, media_type in names:
        content = bytes(read_frame(read, left))
        left -= len(content)
        attachments.append(Attachment(str(name), str(media_type), content))
    return tuple(attachments)
