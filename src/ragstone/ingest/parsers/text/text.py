"""Plain text: bytes are decoded, and read as headings, entries and paragraphs."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean
from ragstone.ingest.parsers.text.paragraphs import add_plain_text

SAMPLE = 64 * 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Exotic code pages left out: a detector that may choose them takes short Western text for Persian.
_CODE_PAGES = [
    "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256",
    "koi8_r", "cp866", "cp932", "euc_jp", "gb18030", "big5", "cp949",
]  # fmt: skip
_WESTERN = frozenset(
    "àâäáãåæçéèêëíìîïñóòôöõøœúùûüýÿßÀÂÄÁÃÅÆÇÉÈÊËÍÌÎÏÑÓÒÔÖÕØŒÚÙÛÜÝŸ‘’“”‚„–—…•€£¥§©®°±«»·¿¡¢´ªº²³µ½¼¾×\xa0"
)
_ASCII = re.compile(rb"[\x20-\x7e]")
_SIGN_IN_WORD = re.compile("[a-z][¡-¶¸-¿][a-z]")
_CONTROL_OF_LATIN_2 = re.compile(rb"[\x80-\x9f]")
_SIGN_OF_CP1250 = re.compile(r"[^\W\d_](?:[ˇ¦¬±¶]|[«»©®µ][^\W\d_])")
_ISO_2022 = b"\x1b$"
"""Begins a stretch of Japanese in text of seven bits."""
_OVERSTRUCK = re.compile(rb"(?:[\x20-\x7e]|[\xc2-\xf4][\x80-\xbf]{1,3})\x08")
"""A character that the next one is printed over: printed manuals write bold and underlined letters like this."""
_BINARY_BYTES = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def parse_text(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a text file in whatever encoding it is in."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    add_plain_text(draft, cleaned.text)
    return draft.finish("text/plain", metadata={"encoding": decoded.encoding}, warnings=decoded.warnings)


class Decoded(NamedTuple):
    """The characters of a file and the encoding they were read with."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(content: bytes, name: str, *, declared: str = "") -> Decoded:
    """Read text in whatever encoding it is in; refuse what is no text and what is empty."""
    if not content.strip():
        raise EmptyDocument(f"{name} is empty", hint="remove it, or put text in it")
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _check(_with_replacements(content[len(mark) :].decode(encoding, "replace"), encoding), name)
    if b"\x00" in content:
        return _check(_unmarked_utf16(content, name), name)
    if _ISO_2022 in content and (japanese := _decode_declared(content, "iso2022_jp_ext")):
        return _check(japanese, name)
    content = _OVERSTRUCK.sub(b"", content)
    sample = content[:SAMPLE]
    if len(_BINARY_BYTES.findall(sample)) > len(sample) // 50:
        raise _binary(name)
    return _check(_utf8(content) or _decode_declared(content, declared) or _code_page(content), name)


def looks_like_text(content: bytes) -> bool:
    """Return whether the bytes could be text in some encoding."""
    try:
        decode(content[:SAMPLE], "")
    except ParseError:
        return False
    return True


def _check(decoded: Decoded, name: str) -> Decoded:
    if "\x00" in decoded.text:
        raise _binary(name)
    if not decoded.text.strip("\ufeff\u200b \t\r\n\f\v"):
        raise EmptyDocument(f"{name} is empty", hint="remove it, or put text in it")
    return decoded


def _unmarked_utf16(content: bytes, name: str) -> Decoded:
    sample = content[: SAMPLE & ~1]
    units = max(1, len(sample) // 2)
    for encoding, high, low in (("utf-16-le", sample[1::2], sample[0::2]), ("utf-16-be", sample[0::2], sample[1::2])):
        # Spaces, digits and line ends alone make a twentieth of any script's text.
        zeros = high.count(0)
        if zeros * 20 < units or low.count(0) * 20 > zeros or len(_ASCII.findall(high)) * 5 > units:
            continue
        decoded = _with_replacements(content.decode(encoding, "replace"), encoding)
        unreadable = sum(not (mark.isprintable() or mark.isspace()) for mark in decoded.text[:SAMPLE])
        if unreadable * 50 <= units and decoded.text.count("\ufffd") * 50 <= units:
            return decoded
    raise _binary(name)


def _utf8(content: bytes) -> Decoded | None:
    try:
        return Decoded(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    try:
        halves = content.decode("utf-8", "surrogatepass")
        return _with_replacements(re.sub("[\ud800-\udfff]", "\ufffd", halves), "utf-8")
    except UnicodeDecodeError:
        pass
    text = content.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    multibyte = len(content) - len(content.decode("ascii", "ignore")) - damaged
    # A few broken bytes among many good sequences: UTF-8 that was cut or pasted together.
    return _with_replacements(text, "utf-8") if damaged * 10 <= multibyte else None


def _decode_declared(content: bytes, declared: str) -> Decoded | None:
    try:
        return Decoded(content.decode(declared), codecs.lookup(declared).name) if declared else None
    except (LookupError, UnicodeDecodeError, ValueError):
        return None


def _code_page(content: bytes) -> Decoded:
    western = content[:SAMPLE].decode("cp1252", "replace")
    foreign = [character for character in western if character > "\x7f"]
    letters = sum(character.isalpha() for character in western)
    # Up to a fifth accented letters, all of them Western, is Western; Slavic and Turkish text has others too.
    fits = set(foreign) <= _WESTERN and not _SIGN_IN_WORD.search(western)
    if fits and len(foreign) * 5 <= letters + 5:
        return _with_replacements(content.decode("cp1252", "replace"), "cp1252")
    from charset_normalizer import from_bytes

    best = from_bytes(content[:SAMPLE], cp_isolation=_CODE_PAGES).best()
    encoding = best.encoding if best else "cp1252"
    if encoding in ("cp1250", "cp1252") and _SIGN_IN_WORD.search(western) and _is_latin_2(content):
        encoding = "iso8859_2"
    return _with_replacements(content.decode(encoding, "replace"), encoding)


def _is_latin_2(content: bytes) -> bool:
    """Return whether Central European text is in ISO 8859-2: cp1250 shows signs for some of its letters."""
    if _CONTROL_OF_LATIN_2.search(content):
        return False
    text = content[:SAMPLE].decode("cp1250", "replace")
    letters = set(text)
    # Where cp1250 shows ą and ľ, ISO 8859-2 has š and ž, of languages without ł, ę and ż.
    return _SIGN_OF_CP1250.search(text) is not None or (bool(letters & set("ąľ")) and not letters & set("łęż"))


def _with_replacements(text: str, encoding: str) -> Decoded:
    damaged = text.count("\ufffd")
    warnings = (f"{damaged} characters could not be read as {encoding} and show as \ufffd",) if damaged else ()
    return Decoded(text, encoding, warnings)


def _binary(name: str) -> ParseError:
    return ParseError(
        f"{name} is not text: it holds NUL or control bytes",
        hint="it may be a binary file with a text file's name; remove or rename it",
    )
