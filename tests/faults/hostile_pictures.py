"""Hostile pictures: headers that promise more than there is memory, and chains that never end."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

from PIL import Image, ImageDraw
from tests.faults.hostile_file import Hostile, zlib_zeros

PNG = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes = b"", crc: int | None = None) -> bytes:
    """A part of a PNG."""
    shown = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", shown)


def png(width: int, height: int, body: bytes = b"", before: bytes = b"", depth: int = 8) -> bytes:
    """A PNG of this size, whatever is in it."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0))
    return PNG + head + before + chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND")


def tiff(entries: dict[int, int], following: int = 0) -> bytes:
    """A TIFF of one frame with these fields, and where it says the next one is."""
    fields = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(entries.items()))
    return b"II*\x00\x08\x00\x00\x00" + struct.pack("<H", len(entries)) + fields + struct.pack("<I", following)


def frame(width: int, height: int, place: int = 8, size: int = 100) -> dict[int, int]:
    """The fields of an uncompressed grey frame."""
    return {256: width, 257: height, 258: 8, 259: 1, 262: 1, 273: place, 277: 1, 278: height, 279: size}


def jpeg(width: int, height: int) -> bytes:
    """The head of a JPEG of this size, and nothing behind it."""
    size = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00"
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
    table = b"\xff\xdb\x00\x43\x00" + b"\x01" * 64
    return b"\xff\xd8" + table + b"\xff\xc0" + struct.pack(">H", len(size) + 2) + size + scan + b"\x00" * 64


def bmp(width: int, height: int, bits: int = 24, packing: int = 0) -> bytes:
    """The head of a BMP."""
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, packing, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + 100, 0, 0, 54) + head + bytes(100)


def drawn_picture(kind: str = "PNG") -> bytes:
    """A picture with words on it."""
    picture = Image.new("RGB", (260, 60), "white")
    ImageDraw.Draw(picture).text((10, 10), "The ferry leaves at nine", fill="black", font_size=20)
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue()


def picture_files() -> Iterator[Hostile]:
    """Files for an OCR engine."""
    packed = zlib_zeros(200)
    text = chunk(b"zTXt", b"note\x00\x00" + packed)
    profile = chunk(b"iCCP", b"p\x00\x00" + packed)
    field = struct.pack("<HHII", 256, 4, 2**32 - 1, 8)
    loop = tiff(frame(10, 10), following=8)
    refused = {
        "a hundred thousand pixels wide.png": (png(100_000, 100_000), "has too many pixels"),
        "as wide as numbers go.png": (png(2**31 - 1, 2**31 - 1), ""),
        "of no size.png": (png(0, 0), ""),
        "below nothing.png": (png(2**32 - 1, 1), ""),
        "without its body.png": (PNG + chunk(b"IHDR", struct.pack(">IIBBBBB", 99, 99, 8, 0, 0, 0, 0)), "is a damaged"),
        "with a depth of its own.png": (png(9, 9, depth=77), "is a damaged picture"),
        "only its first bytes.png": (PNG, ""),
        "a part longer than it.png": (PNG + b"\x7f\xff\xff\xffIHDR" + bytes(30), ""),
        "a note that is a bomb.png": (png(9, 9, bytes(90), before=text), ""),
        "sixty-five thousand wide.jpg": (jpeg(65_500, 65_500), "too many pixels"),
        "of no size.jpg": (jpeg(0, 0), "is a damaged picture"),
        "without its body.jpg": (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00", "damaged"),
        "nothing but marks.jpg": (b"\xff\xd8" + b"\xff\xe1\x00\x02" * 50_000, "damaged"),
        "as wide as numbers go.tif": (tiff(frame(2**31 - 1, 2**31 - 1)), "too many pixels"),
        "of no size.tif": (tiff(frame(0, 0)), ""),
        "far behind its end.tif": (tiff(frame(100, 100, place=2**31, size=10_000)), "is a damaged picture"),
        "more than it holds.tif": (tiff(frame(5000, 5000, size=2**32 - 1)), "is a damaged picture"),
        "more fields than it says.tif": (b"II*\x00\x08\x00\x00\x00\xff\xff" + field * 900, ""),
        "as wide as numbers go.bmp": (bmp(2**31 - 1, 2**31 - 1), "too many pixels"),
        "below nothing.bmp": (bmp(-5, -(2**31)), ""),
        "of a hundred bits.bmp": (bmp(9, 9, bits=100), "is a damaged picture"),
        "packed in a strange way.bmp": (bmp(9, 9, packing=99), "is a damaged picture"),
        "a size that lies.webp": (b"RIFF\xff\xff\xff\xffWEBPVP8X\x0a\x00\x00\x00" + b"\xff" * 200, "too many pixels"),
        "not a picture.gif": (b"GIF89a" + b"\xff\xff\xff\xff" + bytes(50), "which cannot be read"),
    }  # fmt: skip
    for name, (content, says) in refused.items():
        yield Hostile(name, content, "refused", says, bomb="bomb" in name)
    drawing = b'<svg xmlns="http://www.w3.org/2000/svg"><text>words</text></svg>'
    yield Hostile("a drawing.svg", drawing, "read", "words")
    yield Hostile("a frame behind itself.tif", loop)
    yield Hostile("six thousand frames.tif", _chain(6000), "refused", "6,000 pages; the limit is 5,000")
    yield Hostile("a profile that is a bomb.png", png(9, 9, bytes(90), before=profile), bomb=True)
    yield Hostile("black as night.png", png(9000, 9000, bytes(9001 * 9000)), bomb=True)
    yield Hostile("a picture by another name.jpg", drawn_picture("PNG"), "read", "ferry")
    yield Hostile("a picture of a page.pdf", drawn_picture("PNG"), "refused", "is not a PDF")
    yield Hostile("a picture in words.txt", drawn_picture("BMP"), "read", "ferry")


def _chain(frames: int) -> bytes:
    """A TIFF of so many frames that share one tiny body."""
    fields = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(frame(1, 1, size=1).items()))
    size = 2 + len(fields) + 4
    parts = [b"II*\x00\x08\x00\x00\x00"]
    for number in range(frames):
        following = 8 + size * (number + 1) if number + 1 < frames else 0
        parts.append(struct.pack("<H", 9) + fields + struct.pack("<I", following))
    return b"".join(parts)
