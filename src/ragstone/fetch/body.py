"""Reads bodies: unpacked as they come in, and never more of them than is allowed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Callable, Iterator

STEP = 256 * 1024
MAX_FILES = 1000
"""A gzip body may be several files one after the other; a bomb is very many."""


class TooLarge(Exception):
    """More bytes than the limit."""


class Damaged(Exception):
    """Packed in a way that cannot be read, or cut off."""


async def read_body(parts: AsyncIterable[bytes], encoding: str, limit: int, declared: int = 0) -> bytes:
    """All of a body, unpacked. What is declared, what is sent and what it unpacks to must all fit the limit."""
    if declared > limit:
        raise TooLarge
    unpack = _unpacker(encoding)
    received = size = 0
    kept: list[bytes] = []
    async for part in parts:
        received += len(part)
        for piece in unpack.feed(part) if unpack else (part,):
            size += len(piece)
            kept.append(piece)
            if size > limit:
                raise TooLarge
        if received > limit:
            raise TooLarge
    if unpack and received:
        unpack.finish()
    return b"".join(kept)


def unzip(content: bytes, limit: int) -> bytes:
    """Unpack a gzip file that is itself the content."""
    unpack = Unpacker(_gzip)
    kept: list[bytes] = []
    size = 0
    for start in range(0, len(content), STEP):
        for piece in unpack.feed(content[start : start + STEP]):
            size += len(piece)
            kept.append(piece)
            if size > limit:
                raise TooLarge
    unpack.finish()
    return b"".join(kept)


class Unpacker:
    """Unpacks gzip or deflate in bounded steps."""

    def __init__(self, start: Callable[[bytes], zlib._Decompress]) -> None:
        self._start = start
        self._stream: zlib._Decompress | None = None
        self._files = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the data unpacks to, in pieces."""
        while data:
            if self._stream is None or self._stream.eof:
                self._files += 1
                if self._files > MAX_FILES:
                    raise TooLarge
                self._stream = self._start(data)
            try:
                piece = self._stream.decompress(data, STEP)
            except zlib.error as problem:
                raise Damaged("it is not packed the way it says") from problem
            if piece:
                yield piece
            data = self._stream.unconsumed_tail or self._stream.unused_data

    def finish(self) -> None:
        """Raise `Damaged` when the end is missing."""
        if self._stream is None or not self._stream.eof:
            raise Damaged("it is cut off")


def _gzip(_: bytes) -> zlib._Decompress:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _deflate(first: bytes) -> zlib._Decompress:
    # The name means zlib's format, and some servers send the bare stream; zlib's first byte tells.
    bare = first[0] & 0x0F != 8
    return zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)


def _unpacker(encoding: str) -> Unpacker | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return Unpacker(_gzip)
        case "deflate":
            return Unpacker(_deflate)
    raise Damaged(f"it is packed as {encoding!r:.40}, which was not asked for")
