"""What a hostile file is to the tests, and archives written byte by byte, so that they can lie."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

End = Literal["read", "refused", "partly", "nothing", "any"]
"""All of it became text; none did; some documents of a container did; it holds no documents; any of these."""
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bait:
    """What hostile files reach for: a file with a secret in it, and a port that counts who comes."""

    secret_file: str
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/bait"


@dataclass(frozen=True, slots=True)
class Hostile:
    """A file made to hurt, and what is to become of it."""

    name: str
    content: bytes = field(repr=False)
    ends: End = "any"
    says: str = ""
    """Words that must stand in the text, in a warning or in the error."""
    bomb: bool = False
    """Small, and made to fill the memory of whoever opens it."""
    endless: bool = False
    """Only the limit on time ends it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of an archive, with whatever it claims about itself."""

    name: str | bytes
    data: bytes = b""
    """The bytes as they stand in the archive."""
    method: int = 0
    size: int | None = None
    """The size it claims to unpack to."""
    packed: int | None = None
    """The packed size it claims."""
    crc: int | None = None
    flags: int = 0x800
    mode: int = 0
    offset: int | None = None
    """Where it claims to begin."""
    date: int = 0x5C21
    extra: bytes = b""

    def raw_name(self) -> bytes:
        return self.name if isinstance(self.name, bytes) else self.name.encode()

    def head(self) -> bytes:
        """What stands both before its bytes and in the list of members."""
        size = len(self.data) if self.size is None else self.size
        packed = len(self.data) if self.packed is None else self.packed
        crc = zlib.crc32(self.data) if self.crc is None else self.crc
        fields = (20, self.flags, self.method, 0, self.date, crc, packed, size)
        return struct.pack("<HHHHHIII", *fields) + struct.pack("<HH", len(self.raw_name()), len(self.extra))


def archive(entries: Iterable[Entry], *, count: int | None = None, comment: bytes = b"") -> bytes:
    """A ZIP of these entries, as they describe themselves."""
    body, listing = bytearray(), bytearray()
    number = 0
    for entry in entries:
        number += 1
        start = len(body) if entry.offset is None else entry.offset
        tail = entry.raw_name() + entry.extra
        body += b"PK\x03\x04" + entry.head() + tail + entry.data
        listing += b"PK\x01\x02" + struct.pack("<H", 0x314) + entry.head()
        listing += struct.pack("<HHHII", 0, 0, 0, entry.mode << 16, start) + tail
    shown = number if count is None else count
    end = struct.pack("<HHHHIIH", 0, 0, shown, shown, len(listing), len(body), len(comment))
    return bytes(body + listing) + b"PK\x05\x06" + end + comment


def deflated(data: bytes) -> bytes:
    """The data as it stands in an archive."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """An ordinary archive of these parts, the same on every run."""
    written = {name: part.encode() if isinstance(part, str) else part for name, part in parts.items()}
    return archive(
        Entry(name, deflated(part), 8, size=len(part), crc=zlib.crc32(part)) for name, part in written.items()
    )


@cache
def packed_run(megabytes: int, of: bytes = b"\0") -> bytes:
    """A deflate stream that unpacks to so many megabytes of one byte: a thousandth of that, made in no time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(of * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * megabytes + b"\x03\x00"


@cache
def zlib_zeros(megabytes: int) -> bytes:
    """The same of zeros, as zlib writes it; their checksum is known without counting them."""
    return b"\x78\xda" + packed_run(megabytes) + struct.pack(">HH", megabytes * MEGABYTE % 65521, 1)


@cache
def _sum_of_zeros(megabytes: int) -> int:
    crc = 0
    for _ in range(megabytes):
        crc = zlib.crc32(bytes(MEGABYTE), crc)
    return crc


def zero_bomb(name: str, megabytes: int) -> Entry:
    """A member of nothing but zeros."""
    size = megabytes * MEGABYTE
    return Entry(name, packed_run(megabytes), 8, size=size, crc=_sum_of_zeros(megabytes))
