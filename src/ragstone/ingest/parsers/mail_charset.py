"""The characters of a part or header, in the charset it names or the one it really uses."""

from __future__ import annotations

import binascii
import codecs
from email.errors import HeaderParseError
from email.header import decode_header

from ragstone.core.errors import ParseError
from ragstone.ingest.parsers.decoding import decode

# Escapes in plain ASCII: such text would pass for UTF-8.
_SEVEN_BIT = ("iso2022", "hz", "utf-7")
# Python's own codecs that no mail uses; some take quadratic time.
_NO_CHARSET = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})


def decode_text(content: bytes, charset: str) -> str:
    """The text; what cannot be read shows as �."""
    declared = _codec(charset)
    if declared.startswith(_SEVEN_BIT):
        return content.decode(declared, "replace")
    if content.isascii() and b"\x00" not in content:
        return content.decode("ascii")
    try:
        return decode(content, "", declared=declared).text
    except ParseError:
        return content.decode("latin-1").replace("\x00", "")


def decode_words(value: str) -> str:
    """A header with its encoded words as what they stand for, and raw bytes in it as what they probably are."""
    value = decode_text(value.encode("utf-8", "surrogateescape"), "")
    try:
        pieces = decode_header(value)
    except (HeaderParseError, binascii.Error, ValueError):
        return value
    return "".join(
        decode_text(piece, charset or "") if isinstance(piece, bytes) else piece for piece, charset in pieces
    )


def _codec(charset: str) -> str:
    try:
        name = codecs.lookup(charset.strip()).name
    except (LookupError, ValueError):
        return ""
    return "" if name in _NO_CHARSET else name
