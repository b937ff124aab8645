"""EPUB: chapters in reading order through the HTML walker; nothing is looked for outside the archive."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from ragstone.core.clock import canonical_text
from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, one_line
from ragstone.ingest.parsers.office.archive import open_archive, read_part, read_xml
from ragstone.ingest.parsers.web.html import add_markup, decode_markup

MEDIA_TYPE = "application/epub+zip"
_NOT_A_BOOK = "open it in a reader to see whether it is whole, and download it again"
# An element that ends itself means something in XHTML and nothing in HTML: a title would swallow the chapter.
_ENDS_ITSELF = re.compile(r"<(title|script|style|textarea|iframe|a|p|div|span|i|b|em|strong)(\s[^<>]*)?/>")


@dataclass(frozen=True, slots=True)
class _Book:
    """The package document of a book: its metadata, and the parts to read in their order."""

    about: Mapping[str, str]
    chapters: tuple[str, ...]
    contents: str
    """The part with the table of contents; empty when there is none."""
    missing: int


def parse_epub(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a book."""
    with open_archive(content, name, "EPUB", options, all_xml=False) as archive:
        book = _book(archive, name)
        if book.chapters and set(book.chapters) & _list_encrypted(archive, name):
            raise ParseError(f"{name} is protected against copying", hint="only a book without DRM can be read")
        draft = Draft(name)
        labels = _labels(archive, book.contents, name)
        for part in book.chapters:
            _add_chapter(draft, archive, part, labels.get(part, ""))
    if book.missing:
        draft.warnings.append(f"{book.missing} chapters that the book lists are not in it")
    about = dict(book.about)
    return draft.finish(MEDIA_TYPE, title=about.pop("title", ""), metadata=about)


def _add_chapter(draft: Draft, archive: zipfile.ZipFile, part: str, label: str) -> None:
    """Add a chapter's blocks, under its name in the table of contents when it has no heading of its own."""
    try:
        decoded = decode_markup(_read(archive, part, draft.name), draft.name)
    except EmptyDocument:
        return
    draft.warnings += decoded.warnings
    markup = _ENDS_ITSELF.sub(r"<\1\2></\1>", decoded.text)
    if label and not re.search(r"<h[1-6][\s>]", markup, re.IGNORECASE):
        draft.add("heading", label, level=1, label=label)
    add_markup(draft, markup)


def _book(archive: zipfile.ZipFile, name: str) -> _Book:
    container = read_xml(archive, "META-INF/container.xml", name, "EPUB")
    root = next(
        (_inside("", _text(file.get("full-path"))) for file in container.iter() if _tag(file) == "rootfile"), ""
    )
    if root not in archive.namelist():
        raise ParseError(f"{name} is a damaged EPUB: it has no package document", hint=_NOT_A_BOOK)
    package = read_xml(archive, root, name, "EPUB")
    manifest = {item.get("id"): item for item in package.iter() if _tag(item) == "item"}
    listed = [manifest.get(entry.get("idref")) for entry in package.iter() if _tag(entry) == "itemref"]
    # A part that is listed again is read once.
    parts = dict.fromkeys(_inside(root, _text(item.get("href"))) for item in listed if item is not None)
    present = set(archive.namelist())
    chapters = tuple(part for part in parts if part in present)
    return _Book(_about(package), chapters, _contents(manifest.values(), root), len(parts) - len(chapters))


def _about(package: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for element in package.iter():
        if str(element.tag).startswith("{http://purl.org/dc/"):
            found.setdefault(_tag(element), one_line(element.text or "")[:1000])
    keys = {"title": "title", "author": "creator", "date": "date", "language": "language"}
    return {key: canonical_text(found[source]) for key, source in keys.items() if found.get(source)}


def _contents(items: Any, root: str) -> str:
    by_kind = {
        "nav" if "nav" in _text(item.get("properties")).split() else _text(item.get("media-type")): item
        for item in items
    }
    item = by_kind.get("nav", by_kind.get("application/x-dtbncx+xml"))
    return _inside(root, _text(item.get("href"))) if item is not None else ""


def _labels(archive: zipfile.ZipFile, contents: str, name: str) -> dict[str, str]:
    """Return each part's name in the table of contents, which is an EPUB 3 page or an EPUB 2 list of points."""
    from selectolax.lexbor import LexborHTMLParser

    if contents not in archive.namelist():
        return {}
    tree = LexborHTMLParser(_ENDS_ITSELF.sub(r"<\1\2></\1>", decode_markup(_read(archive, contents, name), name).text))
    labels: dict[str, str] = {}
    for link in tree.css("nav a[href]"):
        labels.setdefault(_inside(contents, _text(link.attributes.get("href"))), one_line(link.text()))
    for point in tree.css("navpoint"):
        words, target = point.css_first("navlabel"), point.css_first("content[src]")
        if words is not None and target is not None:
            labels.setdefault(_inside(contents, _text(target.attributes.get("src"))), one_line(words.text()))
    return labels


def _list_encrypted(archive: zipfile.ZipFile, name: str) -> set[str]:
    if "META-INF/encryption.xml" not in archive.namelist():
        return set()
    root = read_xml(archive, "META-INF/encryption.xml", name, "EPUB")
    return {_inside("", _text(element.get("URI"))) for element in root.iter() if _tag(element) == "CipherReference"}


def _read(archive: zipfile.ZipFile, part: str, name: str) -> bytes:
    try:
        return read_part(archive, part)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as problem:
        raise ParseError(f"{name} is a damaged EPUB: {problem}", hint=_NOT_A_BOOK) from problem


def _inside(base: str, href: str) -> str:
    """Return the part of the archive that a reference leads to; a path that climbs out of it names no part."""
    path = unquote(urlsplit(href).path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path)) if path else ""


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
