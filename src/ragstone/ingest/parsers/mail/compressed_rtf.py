"""Unpack the RTF of Outlook's messages: bytes, and references to the last four kilobytes."""

from __future__ import annotations

from ragstone.core.errors import ParseError, ParserLimit
from ragstone.ingest.parsers.draft import MAX_CHARS

_WINDOW = 4096
_START = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor "
    b"MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    b"\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
"""The window as it is before the first byte."""
_HEADER = 16


def decompress(packed: bytes) -> bytes:
    """Return the RTF; `ParseError` for bytes of another kind."""
    raw_size, kind = int.from_bytes(packed[4:8], "little"), packed[8:12]
    if kind == b"MELA":
        return packed[_HEADER : _HEADER + raw_size]
    if kind != b"LZFu" or len(packed) < _HEADER:
        raise ParseError("the text of the message is packed in an unknown way")
    if raw_size > MAX_CHARS:
        raise ParserLimit("the text of the message is too long")
    window = bytearray(_START.ljust(_WINDOW, b" "))
    at, out, place = len(_START), bytearray(), _HEADER
    while place < len(packed) and len(out) < raw_size:
        flags = packed[place]
        place += 1
        for bit in range(8):
            if flags >> bit & 1:
                token = int.from_bytes(packed[place : place + 2], "big")
                place += 2
                start, length = token >> 4, (token & 15) + 2
                if start == at or place > len(packed):
                    return bytes(out)
                found = bytes(_copy(window, start, at, length))
            else:
                found = packed[place : place + 1]
                place += 1
            for byte in found:
                window[at] = byte
                at = (at + 1) % _WINDOW
            out += found
    return bytes(out)


def _copy(window: bytearray, start: int, at: int, length: int) -> bytearray:
    """Return bytes of the window; those that are written meanwhile are among them."""
    found = bytearray()
    for offset in range(length):
        place = (start + offset) % _WINDOW
        behind = (place - at) % _WINDOW
        found.append(found[behind] if behind < len(found) else window[place])
    return found
