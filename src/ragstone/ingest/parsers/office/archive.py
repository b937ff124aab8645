"""Archives that are documents (DOCX, PPTX, XLSX, ODF, EPUB): checked before any library sees what is in them."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from ragstone.core.clock import canonical_text
from ragstone.core.errors import ParseError
from ragstone.ingest.parsers.draft import ParseOptions, chosen_title, one_line

MAX_ENTRIES = 5_000
MAX_RATIO = 200
RATIO_MATTERS = 8 * 1024 * 1024
_STEP = 64 * 1024
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = "open it in the program it was made with and save it again"
# The last alternative is `<?xm` in EBCDIC, which some readers understand too.
_XML_START = re.compile(rb"[\x00\s\xef\xbb\xbf\xfe\xff]*<|\x4c\x6f\xa7\x94")
_APPLE_DOUBLE = b"\x00\x05\x16\x07"
"""Begins what a Mac adds to an archive about each file, under the file's name; no XML begins like this."""
_XINCLUDE = "http://www.w3.org/2001/XInclude"


def open_archive(
    content: bytes, name: str, kind: str, options: ParseOptions, *, all_xml: bool = True
) -> zipfile.ZipFile:
    """Open an archive, once it is known to be no bomb and (except for web pages) to hold no DTD, entity or include."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        _check_sizes(archive, len(content), name, options)
        for entry in archive.infolist() if all_xml else ():
            _check_entry(archive, entry, name, kind)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as problem:
        raise ParseError(f"{name} is a damaged {kind}: {problem}", hint=_DAMAGED) from problem
    return archive


def read_part(archive: zipfile.ZipFile, part: str) -> bytes:
    """Return the bytes of a part, in steps: zipfile's own way unpacks all there is, and only then looks at the size."""
    with archive.open(part) as stream:
        return b"".join(iter(lambda: stream.read(_STEP), b""))


def read_xml(archive: zipfile.ZipFile, part: str, name: str, kind: str) -> Any:
    """Return the root element of an XML part; refused when it has a DTD."""
    from defusedxml.ElementTree import parse

    with name_broken_xml(part, name, kind), archive.open(part) as stream:
        return parse(stream, forbid_dtd=True).getroot()


@contextmanager
def name_broken_xml(part: str, name: str, kind: str) -> Iterator[None]:
    """Turn what the XML reader raises into a `ParseError` that names the file and the part."""
    from xml.etree.ElementTree import ParseError as NotXml

    from defusedxml import DefusedXmlException

    try:
        yield
    except DefusedXmlException as problem:
        raise _reaches_outside(name, part) from problem
    except (NotXml, LookupError, zipfile.BadZipFile, zlib.error, EOFError, ValueError) as problem:
        raise ParseError(f"{name} is a damaged {kind}: {part!r:.80} is not XML", hint=_DAMAGED) from problem


def office_properties(archive: zipfile.ZipFile, name: str, kind: str) -> dict[str, str]:
    """Return title, author and date as an office program saved them with the file."""
    if "docProps/core.xml" not in archive.namelist():
        return {}
    about = read_xml(archive, "docProps/core.xml", name, kind)
    return pick_properties(about, {"title": ("title",), "author": ("creator",), "date": ("created",)})


def pick_properties(about: Iterable[Any], sources: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return properties by our names for them, each from the first of its elements that holds a word."""
    found: dict[str, str] = {}
    for element in about:
        found.setdefault(element.tag.rpartition("}")[2], one_line(element.text or "")[:1000])
    named = {key: next(filter(None, map(found.get, tags)), "") for key, tags in sources.items()}
    named["title"] = chosen_title(named["title"])
    return {key: canonical_text(value) for key, value in named.items() if value}


def _check_sizes(archive: zipfile.ZipFile, size: int, name: str, options: ParseOptions) -> None:
    """Refuse bombs by what the archive declares: zipfile unpacks no more of an entry than that."""
    entries = archive.infolist()
    declared = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES or declared > options.unpacked_mb * 1024 * 1024:
        raise _bomb(name, f"{len(entries):,} entries that unpack to {declared:,} bytes")
    if declared > RATIO_MATTERS and declared > MAX_RATIO * size:
        raise _bomb(name, f"{size:,} bytes that unpack to {declared:,}")
    if any(entry.flag_bits & 1 for entry in entries):
        raise ParseError(f"{name} is encrypted", hint="save it without a password")
    # One step of bzip2 or LZMA may fill the memory, and no program packs its documents by them.
    if any(entry.compress_type not in _METHODS for entry in entries):
        raise ParseError(f"{name} is packed by a method that documents do not use", hint=_DAMAGED)


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, kind: str) -> None:
    with archive.open(entry) as part:
        assert isinstance(part, zipfile.ZipExtFile)
        # Relationships can call a part anything, so what looks like XML is checked as XML.
        head = part.peek(64)
        is_named_xml = entry.filename.lower().endswith((".xml", ".rels")) and not head.startswith(_APPLE_DOUBLE)
        if is_named_xml or _XML_START.match(head):
            _check_xml(part, entry.filename, name, kind)


class _Outside(Exception):
    """Some XML names what is not part of it."""


def _check_xml(part: IO[bytes], part_name: str, name: str, kind: str) -> None:
    from xml.parsers.expat import ExpatError, ParserCreate

    # Without a handler for elements: most of a workbook is elements, and calling Python for each takes minutes.
    reader = ParserCreate(namespace_separator=" ")
    reader.StartDoctypeDeclHandler = _refuse_doctype
    reader.StartNamespaceDeclHandler = _refuse_include
    try:
        reader.ParseFile(part)
    except _Outside as problem:
        raise _reaches_outside(name, part_name) from problem
    except (ExpatError, ValueError, LookupError) as problem:
        raise ParseError(f"{name} is a damaged {kind}: {part_name!r:.80} is not XML", hint=_DAMAGED) from problem


def _refuse_doctype(*_: object) -> None:
    raise _Outside


def _refuse_include(_: str | None, namespace: str | None) -> None:
    if namespace == _XINCLUDE:
        raise _Outside


def _reaches_outside(name: str, part: str) -> ParseError:
    return ParseError(
        f"{name} was refused: its part {part!r:.80} holds a DTD, an entity or an include",
        hint="such files can read other files; save it again from the program it was made with",
    )


def _bomb(name: str, what: str) -> ParseError:
    return ParseError(f"{name} was refused: {what}", hint="no document a person wrote looks like this")
