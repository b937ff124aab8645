"""Choose the parser of a file: by its bytes first, then by its name."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from pathlib import PurePosixPath

from ragstone.core.errors import EmptyDocument, ParseError, ParserLimit, RagstoneError, UnsupportedFormat
from ragstone.core.registry import Registry
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, KINDS, ParseOptions, printable
from ragstone.ingest.parsers.mail.shape import looks_like_mail
from ragstone.ingest.parsers.markup.shape import find_markup, is_docbook, is_info
from ragstone.ingest.parsers.text.text import looks_like_text

PARSERS = Registry(
    "parser",
    {
        "text": "ragstone.ingest.parsers.text.text:parse_text",
        "markdown": "ragstone.ingest.parsers.text.markdown:parse_markdown",
        "rst": "ragstone.ingest.parsers.markup.rst:parse_rst",
        "asciidoc": "ragstone.ingest.parsers.markup.asciidoc:parse_asciidoc",
        "man": "ragstone.ingest.parsers.markup.man:parse_man",
        "docbook": "ragstone.ingest.parsers.markup.docbook:parse_docbook",
        "info": "ragstone.ingest.parsers.markup.info:parse_info",
        "org": "ragstone.ingest.parsers.markup.org:parse_org",
        "notebook": "ragstone.ingest.parsers.text.notebook:parse_notebook",
        "subtitles": "ragstone.ingest.parsers.text.subtitles:parse_subtitles",
        "html": "ragstone.ingest.parsers.web.html:parse_html",
        "pdf": "ragstone.ingest.parsers.pdf.parser:parse_pdf",
        "docx": "ragstone.ingest.parsers.office.docx:parse_docx",
        "rtf": "ragstone.ingest.parsers.office.rtf:parse_rtf",
        "pptx": "ragstone.ingest.parsers.office.pptx:parse_pptx",
        "xlsx": "ragstone.ingest.parsers.office.xlsx:parse_xlsx",
        "xls": "ragstone.ingest.parsers.office.xls:parse_xls",
        "odt": "ragstone.ingest.parsers.office.odt:parse_odt",
        "ods": "ragstone.ingest.parsers.office.ods:parse_ods",
        "odp": "ragstone.ingest.parsers.office.odt:parse_odp",
        "csv": "ragstone.ingest.parsers.text.structured:parse_csv",
        "epub": "ragstone.ingest.parsers.office.epub:parse_epub",
        "json": "ragstone.ingest.parsers.text.structured:parse_json",
        "mail": "ragstone.ingest.parsers.mail.parser:parse_mail",
        "outlook": "ragstone.ingest.parsers.mail.outlook:parse_outlook",
        "image": "ragstone.ingest.parsers.images.image:parse_image",
        "code": "ragstone.ingest.parsers.code:parse_code",
    },
)
_PICTURES = frozenset({"image/png", "image/jpeg", "image/webp", "image/bmp", "image/tiff"})
_MAIN_PARTS = {
    "docx": "word/document.xml",
    "pptx": "ppt/presentation.xml",
    "xlsx": "xl/workbook.xml",
    "epub": "META-INF/container.xml",
}
_OPEN_DOCUMENTS = {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}
_ARCHIVES = frozenset({*_MAIN_PARTS, *_OPEN_DOCUMENTS.values()})
_OPEN_DOCUMENT = re.compile(rb"application/vnd\.oasis\.opendocument\.([a-z]{1,20})(?:-template)?")
_LONGEST_MIMETYPE = 100
_FLAT_HEAD = 8192
_OLE_PARTS = {"xls": {"workbook", "book"}, "outlook": {"__properties_version1.0"}}
_CALLED = {
    "pdf": "a PDF",
    "image": "a picture",
    "docx": "a DOCX",
    "rtf": "an RTF",
    "pptx": "a PPTX",
    "xlsx": "an XLSX",
    "xls": "an XLS",
    "odt": "an ODT",
    "ods": "an ODS",
    "odp": "an ODP",
    "outlook": "an Outlook message",
    "epub": "an EPUB",
}
"""Kinds whose bytes show what they are: a file that only has the name is refused."""
_NEVER_MAIL = frozenset({"code", "csv", "json"})
_BY_SHAPE = frozenset({"text", "man", ".asc"})
"""Kinds and suffixes that say little: the text decides which markup it is, if any."""
_SUPPORTED = (
    "text, Markdown, reStructuredText, AsciiDoc, Org, man pages, Info, DocBook, notebooks, subtitles, HTML, PDF, DOCX, "
    "RTF, PPTX, XLSX, XLS, ODT, ODS, ODP, CSV, EPUB, JSON, EML, MSG, code and picture files can be read, and one "
    "file packed by gzip"
)
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html[\s>])", re.IGNORECASE)
_GZIP = b"\x1f\x8b\x08"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def parse(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Turn a file into text and blocks, or raise a `ParseError` that names it. The name is never opened."""
    shown = printable(name)
    if content.startswith(_GZIP):
        content, inner = _unpack(content, shown, options), shown.removesuffix(".gz")
        try:
            kind, shown = _kind(content, inner), inner
        except UnsupportedFormat as problem:
            raise UnsupportedFormat(f"{shown} holds something that cannot be read", hint=problem.hint) from problem
    else:
        kind = _kind(content, shown)
    try:
        parsed: Parsed = PARSERS.load(kind)(content, shown, options)
        return parsed
    except RagstoneError:
        raise
    except MemoryError:
        raise ParserLimit(
            f"{shown} needs more memory than the parser may use", hint="raise limits.parse_memory_mb, or split the file"
        ) from None
    except RecursionError as problem:
        raise ParseError(f"{shown} is nested too deep to be read", hint="simplify the file") from problem
    except Exception as problem:
        # A library met something it did not expect: that is the file's failure, and it is reported as one.
        raise ParseError(
            f"{shown} could not be read as {kind}: {type(problem).__name__}: {problem!s:.200}",
            hint="the file may be damaged; open it and save it again",
        ) from problem


def _unpack(content: bytes, name: str, options: ParseOptions) -> bytes:
    """Return what a file packed by gzip holds, such as a man page, within the limit of unpacked files."""
    unpacker = zlib.decompressobj(wbits=31)
    most = options.unpacked_mb * 1024 * 1024
    try:
        unpacked = unpacker.decompress(content, most)
    except zlib.error as problem:
        raise ParseError(f"{name} is a damaged gzip file: {problem}", hint="copy or download it again") from problem
    if unpacker.unconsumed_tail:
        raise ParserLimit(
            f"{name} unpacks to more than {options.unpacked_mb:,} MB", hint="unpack it and split the file"
        )
    if not unpacker.eof:
        raise ParseError(f"{name} is a damaged gzip file: its end is missing", hint="copy or download it again")
    return unpacked


def _kind(content: bytes, name: str) -> str:
    if not content:
        raise EmptyDocument(f"{name} is empty", hint="remove it, or put text in it")
    suffix = PurePosixPath(name).suffix.lower()
    named = KINDS.get(suffix)
    is_text = looks_like_text(content)
    if kind := _kind_by_mark(content, name, named):
        return kind
    media = "" if is_text else _media_type(content)
    if media in _PICTURES and named not in _CALLED.keys() - {"image"}:
        return "image"
    if named == "xls" and is_text:
        # Programs that write a web page or plain rows under the name of a workbook are many.
        return "html" if _HTML.match(content[:1024]) or b"<table" in content[:4096].lower() else "csv"
    if named in _CALLED:
        raise _not_what_it_says(content, name, _CALLED[named])
    if media:
        raise UnsupportedFormat(f"{name} is {media}, which cannot be read", hint=_SUPPORTED)
    return _kind_of_text(content, name, suffix, is_text=is_text)


def _kind_by_mark(content: bytes, name: str, named: str | None) -> str:
    """Return what the first bytes of a file say it is; empty when they say nothing."""
    if b"%PDF-" in content[:1024] and named in (None, "pdf"):
        return "pdf"
    if content.startswith(b"{\\rtf") and named in (None, "rtf", "text"):
        return "rtf"
    if named in (None, "info", "text") and is_info(content):
        return "info"
    if named in (None, "docbook") and is_docbook(content):
        return "docbook"
    if content.startswith(b"PK\x03\x04"):
        return _kind_of_archive(content, name, named)
    if b"<office:document" in content[:_FLAT_HEAD] and (stated := _OPEN_DOCUMENT.search(content[:_FLAT_HEAD])):
        return _OPEN_DOCUMENTS.get(stated[1].decode(), "")
    return _kind_of_ole(content, name, named) if content.startswith(_OLE) else ""


def _kind_of_text(content: bytes, name: str, suffix: str, *, is_text: bool) -> str:
    named = KINDS.get(suffix)
    if named not in _NEVER_MAIL and looks_like_mail(content):
        return "mail"
    if named == "text" and name.lower().endswith(".rst.txt"):
        return "rst"
    if named and named not in _BY_SHAPE and suffix not in _BY_SHAPE:
        return named
    if is_text:
        return "html" if not named and _HTML.match(content[:1024]) else find_markup(content) or "text"
    if named:
        return "text"
    raise UnsupportedFormat(f"{name} is of a kind that cannot be read", hint=_SUPPORTED)


def _kind_of_ole(content: bytes, name: str, named: str | None) -> str:
    """Return which of the old Office formats a file has; empty when none of those that are read."""
    import olefile

    try:
        with olefile.OleFileIO(io.BytesIO(content)) as file:
            streams = {path[0].lower() for path in file.listdir()}
    except (OSError, ValueError, IndexError, struct.error) as problem:
        if named in _OLE_PARTS:
            raise ParseError(
                f"{name} is damaged: {problem!s:.200}", hint="it may have been cut off; copy or download it again"
            ) from problem
        return ""
    if "encryptedpackage" in streams:
        raise ParseError(f"{name} is encrypted: it cannot be read", hint="save it without a password")
    return next((kind for kind, parts in _OLE_PARTS.items() if parts & streams), "")


def _media_type(content: bytes) -> str:
    import filetype

    found = filetype.guess(content[:8192])
    return found.mime if found else ""


def _kind_of_archive(content: bytes, name: str, named: str | None) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = set(archive.namelist())
            if kind := _kind_of_open_document(archive, name):
                return kind
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError) as problem:
        if named in _ARCHIVES:
            raise ParseError(
                f"{name} is a damaged {named.upper()}: {problem}",
                hint="it may have been cut off; copy or download it again",
            ) from problem
        members = set()
    found = [kind for kind, part in _MAIN_PARTS.items() if part in members]
    if named in found or (named in _MAIN_PARTS and not found and "[Content_Types].xml" in members):
        # Relationships may give a document's main part another name.
        return named
    if found:
        return found[0]
    if named in _ARCHIVES and named not in _MAIN_PARTS and "content.xml" in members:
        return named
    raise UnsupportedFormat(f"{name} is a ZIP archive, not a document", hint=_SUPPORTED)


def _kind_of_open_document(archive: zipfile.ZipFile, name: str) -> str:
    """Return which OpenDocument file an archive says it is; empty for other archives."""
    entry = archive.NameToInfo.get("mimetype")
    if entry is None or entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return ""
    with archive.open(entry) as stream:
        stated = _OPEN_DOCUMENT.fullmatch(stream.read(_LONGEST_MIMETYPE).strip())
    if stated and (kind := _OPEN_DOCUMENTS.get(stated[1].decode())):
        return kind
    if stated:
        raise UnsupportedFormat(f"{name} is {stated[0].decode()}, which cannot be read", hint=_SUPPORTED)
    return ""


def _not_what_it_says(content: bytes, name: str, claimed: str) -> ParseError:
    if content.startswith(_OLE):
        return ParseError(
            f"{name} is not {claimed}: it is an old or encrypted Office file",
            hint="save it in today's format (.docx, .pptx, .xlsx) without a password",
        )
    seen = (
        "a web page" if _HTML.match(content[:1024]) else "text" if looks_like_text(content) else "data of another kind"
    )
    return ParseError(
        f"{name} is not {claimed}: it contains {seen}",
        hint="a download may have saved an error page; get the file again, or rename it to what it is",
    )
