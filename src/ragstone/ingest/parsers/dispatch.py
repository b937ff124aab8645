"""Which parser takes a file: what its bytes say first, then its name."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import PurePosixPath

from ragstone.core.errors import EmptyDocument, ParseError, ParserLimit, RagstoneError, UnsupportedFormat
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.cleaning import printable
from ragstone.ingest.parsers.decoding import looks_like_text

_KINDS = {
    ".txt": "text",
    ".text": "text",
    ".log": "text",
    ".rst": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
}
SUPPORTED_SUFFIXES = frozenset(_KINDS)
_SUPPORTED = "text, Markdown, MDX, HTML, PDF and DOCX files can be read"
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html[\s>])", re.IGNORECASE)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def parse(content: bytes, name: str, *, pages: int = 5000) -> Parsed:
    """Turn a file into text and blocks, or raise a `ParseError` that names it. The name is never opened."""
    shown = printable(name)
    kind = _kind(content, shown)
    try:
        return _parse(kind, content, shown, pages)
    except RagstoneError:
        raise
    except MemoryError:
        raise ParserLimit(
            f"{shown} needs more memory than the parser may use",
            hint="raise limits.parse_memory_mb, or split the file",
        ) from None
    except RecursionError as problem:
        raise ParseError(f"{shown} is nested too deep to be read", hint="simplify the file") from problem
    except Exception as problem:
        # A library met something it did not expect: that is the file's failure, and it is reported as one.
        raise ParseError(
            f"{shown} could not be read as {kind}: {type(problem).__name__}: {problem!s:.200}",
            hint="the file may be damaged; open it and save it again",
        ) from problem


def _parse(kind: str, content: bytes, name: str, pages: int) -> Parsed:
    match kind:
        case "text":
            from ragstone.ingest.parsers.text import parse_text

            return parse_text(content, name)
        case "markdown":
            from ragstone.ingest.parsers.markdown import parse_markdown

            return parse_markdown(content, name)
        case "html":
            from ragstone.ingest.parsers.html import parse_html

            return parse_html(content, name)
        case "pdf":
            from ragstone.ingest.parsers.pdf import parse_pdf

            return parse_pdf(content, name, pages=pages)
        case _:
            from ragstone.ingest.parsers.docx import parse_docx

            return parse_docx(content, name)


def _kind(content: bytes, name: str) -> str:
    if not content:
        raise EmptyDocument(f"{name} is empty", hint="remove it, or put text in it")
    suffix = PurePosixPath(name).suffix.lower()
    named = _KINDS.get(suffix)
    if b"%PDF-" in content[:1024] and named in (None, "pdf"):
        return "pdf"
    if content.startswith(b"PK\x03\x04"):
        if _is_docx(content, name):
            return "docx"
        raise UnsupportedFormat(f"{name} is a ZIP archive, not a DOCX", hint=_SUPPORTED)
    if named in ("pdf", "docx"):
        raise _not_what_it_says(content, name, named.upper())
    if named and not looks_like_text(content):
        _refuse_known_binary(content, name)
    if named:
        return named
    if not suffix and looks_like_text(content):
        return "html" if _HTML.match(content[:1024]) else "text"
    _refuse_known_binary(content, name)
    hint = f"{_SUPPORTED}; rename it to .txt to read it as text" if looks_like_text(content) else _SUPPORTED
    raise UnsupportedFormat(f"{name} is of a kind that cannot be read", hint=hint)


def _refuse_known_binary(content: bytes, name: str) -> None:
    import filetype

    found = None if looks_like_text(content) else filetype.guess(content[:8192])
    if found is not None:
        raise UnsupportedFormat(f"{name} is {found.mime}, which cannot be read", hint=_SUPPORTED)


def _is_docx(content: bytes, name: str) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as problem:
        if name.lower().endswith(".docx"):
            raise ParseError(
                f"{name} is a damaged DOCX: {problem}",
                hint="it may have been cut off; copy or download it again",
            ) from problem
        return False
    return "word/document.xml" in members or (
        name.lower().endswith(".docx") and "[Content_Types].xml" in members
    )


def _not_what_it_says(content: bytes, name: str, claimed: str) -> ParseError:
    if content.startswith(_OLE):
        return ParseError(
            f"{name} is not a {claimed}: it is an old or encrypted Office file",
            hint="save it as .docx without a password",
        )
    seen = (
        "a web page" if _HTML.match(content[:1024]) else "text" if looks_like_text(content) else "other data"
    )
    return ParseError(
        f"{name} is not a {claimed}: it holds {seen}",
        hint="a download may have saved an error page; get the file again, or rename it to what it is",
    )
