"""OpenDocument files, packed or flat: their parts, properties and words."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cached_property
from typing import IO, Any

from ragstone.core.errors import ParseError
from ragstone.ingest.parsers.draft import ParseOptions
from ragstone.ingest.parsers.office.archive import name_broken_xml, open_archive, pick_properties, read_part, read_xml

_ODF = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
OFFICE, TEXT, TABLE, DRAW, STYLE, PRESENTATION = (
    _ODF % space for space in ("office", "text", "table", "drawing", "style", "presentation")
)
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_HEAD = 1024
_MANIFEST = "META-INF/manifest.xml"
_PROPERTIES = {
    "title": ("title",),
    "author": ("initial-creator", "creator"),
    "date": ("creation-date", "date"),
    "language": ("language",),
}
UNREAD = frozenset({
    f"{OFFICE}annotation", f"{OFFICE}annotation-end", f"{OFFICE}forms", f"{OFFICE}binary-data", f"{_SVG}title",
    f"{_SVG}desc", f"{TEXT}tracked-changes", f"{TEXT}number", f"{TEXT}ruby-text", f"{TEXT}script",
    f"{TEXT}table-of-content", f"{TEXT}illustration-index", f"{TEXT}table-index", f"{TEXT}object-index",
    f"{TEXT}user-index", f"{TEXT}alphabetical-index", f"{PRESENTATION}notes", f"{DRAW}object-ole",
})  # fmt: skip
"""Comments, deleted text, forms, lists of what the document itself says, and what is not words."""
_BREAKS = {f"{TEXT}tab": "\t", f"{TEXT}line-break": "\n", f"{TEXT}p": "\n", f"{TEXT}h": "\n"}
_SPACES = f"{TEXT}s"
_MOST_SPACES = 100


class OdfFile:
    """The parts of a file; a flat one is a single piece of XML that holds all of them."""

    def __init__(self, content: bytes, name: str, kind: str, options: ParseOptions) -> None:
        self.name, self.kind = name, kind
        self._content = content
        self._seen: set[str] = set()
        is_packed = content.startswith(b"PK")
        self._archive = open_archive(content, name, kind, options, all_xml=False) if is_packed else None
        if self._is_encrypted():
            raise ParseError(f"{name} is encrypted", hint="save it without a password")

    def read_tree(self, part: str) -> Any:
        """Return the root element of a part; None for a part that is not there, which only the content must be."""
        if self._archive is None:
            return self._whole
        if part != "content.xml" and part not in self._archive.namelist():
            return None
        return read_xml(self._archive, part, self.name, self.kind)

    def read_events(self) -> Iterator[tuple[str, Any]]:
        """Yield each element of the content with "start" and "end", so that a large one need not stay in memory."""
        from defusedxml.ElementTree import iterparse

        with name_broken_xml("content.xml", self.name, self.kind), self._open("content.xml") as stream:
            yield from iterparse(stream, events=("start", "end"), forbid_dtd=True)

    def read_properties(self) -> dict[str, str]:
        """Return title, author, date and language as they were saved with the file."""
        root = self.read_tree("meta.xml")
        about = root.find(f"{OFFICE}meta") if root is not None else None
        return pick_properties(about if about is not None else (), _PROPERTIES)

    def find_table(self, link: Any) -> Any:
        """Return the table of an embedded chart or sheet; None for other objects, and for one that was read before."""
        part = f"{link.get(_LINK, '').removeprefix('./')}/content.xml"
        if self._archive is None or part in self._seen or part not in self._archive.namelist():
            return None
        self._seen.add(part)
        # Formulas are parts of their own too, often with a DTD, and hold no words.
        with name_broken_xml(part, self.name, self.kind), self._archive.open(part) as stream:
            if b"<office:document" not in stream.read(_HEAD):
                return None
        return next(read_xml(self._archive, part, self.name, self.kind).iter(f"{TABLE}table"), None)

    def _open(self, part: str) -> IO[bytes]:
        return self._archive.open(part) if self._archive else io.BytesIO(self._content)

    @cached_property
    def _whole(self) -> Any:
        from defusedxml.ElementTree import fromstring

        with name_broken_xml("content.xml", self.name, self.kind):
            return fromstring(self._content, forbid_dtd=True)

    def _is_encrypted(self) -> bool:
        parts = self._archive.namelist() if self._archive else []
        if "encrypted-package" in parts:
            return True
        if not self._archive or _MANIFEST not in parts:
            return False
        with name_broken_xml(_MANIFEST, self.name, self.kind):
            return b"encryption-data" in read_part(self._archive, _MANIFEST)


def join_words(root: Any) -> str:
    """Return the words of an element, its paragraphs on lines of their own."""
    found: list[str] = []
    waiting: list[Any] = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.append(item)
        elif item.tag not in UNREAD:
            found.append(read_break(item) + (item.text or ""))
            for child in reversed(item):
                waiting += (child.tail or "", child)
    return "".join(found).strip()


def read_break(element: Any) -> str:
    """Return the white space that an element stands for; empty for others."""
    if element.tag == _SPACES:
        return " " * read_count(element, f"{TEXT}c", _MOST_SPACES)
    return _BREAKS.get(element.tag, "")


def read_count(element: Any, attribute: str, most: int) -> int:
    """Return a number from 1 on that an element states, within bounds: a file may say anything."""
    stated = element.get(attribute, "")
    return min(max(int(stated), 1), most) if stated.isascii() and stated.isdecimal() and len(stated) < 10 else 1
