"""DOCX: checked as an archive and as XML first, then read through the HTML walker."""

from __future__ import annotations

import io
import re
import zipfile
from typing import IO, Any
from xml.sax.handler import ContentHandler, feature_namespaces

from ragstone.core.errors import ParseError
from ragstone.core.filters import canonical_text
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.cleaning import one_line

MAX_ENTRIES = 5_000
MAX_BYTES = 256 * 1024 * 1024
MAX_RATIO = 200
RATIO_MATTERS = 8 * 1024 * 1024
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_DAMAGED = "open it in a word processor and save it again"
_XML_START = re.compile(rb"[\x00\s\xef\xbb\xbf\xfe\xff]*<")
_XINCLUDE = "http://www.w3.org/2001/XInclude"
_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='Quote'] => blockquote > p:fresh
p[style-name='Intense Quote'] => blockquote > p:fresh
p[style-name='Code'] => pre:separator('\\n')
"""


def parse_docx(content: bytes, name: str) -> Parsed:
    """Read a word processor's document: headings, lists, tables, notes."""
    import mammoth

    from ragstone.ingest.parsers.html import parse_markup

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_archive(archive, len(content), name)
            properties = _properties(archive)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as problem:
        raise ParseError(f"{name} is a damaged DOCX: {problem}", hint=_DAMAGED) from problem
    converted = mammoth.convert_to_html(
        io.BytesIO(content), style_map=_STYLES, convert_image=mammoth.images.img_element(lambda _: {})
    )
    parsed = parse_markup(converted.value, name, media_type=MEDIA_TYPE)
    title = properties.pop("title", "") or parsed.title
    return Parsed(parsed.text, parsed.blocks, title, MEDIA_TYPE, properties, parsed.warnings)


def _check_archive(archive: zipfile.ZipFile, size: int, name: str) -> None:
    """Refuse bombs by what the archive declares (zipfile unpacks no more than that), and XML that reaches outside."""
    entries = archive.infolist()
    declared = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES or declared > MAX_BYTES:
        raise _bomb(name, f"{len(entries):,} entries that unpack to {declared:,} bytes")
    if declared > RATIO_MATTERS and declared > MAX_RATIO * size:
        raise _bomb(name, f"{size:,} bytes that unpack to {declared:,}")
    for entry in entries:
        if entry.flag_bits & 1:
            raise ParseError(f"{name} is encrypted", hint="save it without a password")
        with archive.open(entry) as part:
            assert isinstance(part, zipfile.ZipExtFile)
            # Relationships can call a part anything, so what looks like XML is checked as XML.
            if _XML_START.match(part.peek(64)) or entry.filename.lower().endswith((".xml", ".rels")):
                _check_xml(part, entry.filename, name)


class _NoIncludes(ContentHandler):
    """Refuses XInclude; every other element is fine."""

    def startElementNS(self, name: tuple[str | None, str], qname: str | None, attrs: Any) -> None:  # noqa: N802
        if name[0] == _XINCLUDE:
            raise ValueError("XInclude")


def _check_xml(part: IO[bytes], part_name: str, name: str) -> None:
    from xml.sax import SAXException

    from defusedxml import DefusedXmlException
    from defusedxml.expatreader import DefusedExpatParser

    reader = DefusedExpatParser(forbid_dtd=True)
    reader.setFeature(feature_namespaces, True)
    reader.setContentHandler(_NoIncludes())
    try:
        reader.parse(part)
    except (DefusedXmlException, ValueError) as problem:
        raise ParseError(
            f"{name} was refused: its part {part_name!r:.80} holds a DTD, an entity or an include",
            hint="such files can read other files; save it again from a word processor",
        ) from problem
    except SAXException as problem:
        raise ParseError(
            f"{name} is a damaged DOCX: {part_name!r:.80} is not XML", hint=_DAMAGED
        ) from problem


def _properties(archive: zipfile.ZipFile) -> dict[str, str]:
    from defusedxml.ElementTree import parse

    if "docProps/core.xml" not in archive.namelist():
        return {}
    with archive.open("docProps/core.xml") as part:
        root = parse(part, forbid_dtd=True).getroot()
    found: dict[str, str] = {}
    for element in root:
        found.setdefault(element.tag.rpartition("}")[2], one_line(element.text or "")[:1000])
    named = {"title": found.get("title"), "author": found.get("creator"), "date": found.get("created")}
    return {key: canonical_text(value) for key, value in named.items() if value}


def _bomb(name: str, what: str) -> ParseError:
    return ParseError(f"{name} was refused: {what}", hint="no document a person wrote looks like this")
