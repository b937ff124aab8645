"""XML from the net: no document type, no entities, no inclusion of other files."""

from __future__ import annotations

from typing import Any
from xml.sax import SAXException
from xml.sax.handler import ContentHandler, feature_namespaces

from ragstone.core.errors import SourceError

MAX_TEXT = 4000
MAX_ELEMENTS = 500_000
"""Twice what fifty thousand entries of a sitemap with all their fields take."""
MAX_EVENTS = 4_000_000
"""Tags, and pieces of text: the parser makes two of every line."""
MAX_TAG = 1024 * 1024
_PIECE = 64 * 1024
_XINCLUDE = "http://www.w3.org/2001/XInclude"
_HINT = "feeds and sitemaps need none; it may be hostile"
_TOO_MUCH = "no feed or sitemap needs as much; it may be hostile"

Record = tuple[str, dict[str, str]]
"""An element's name and the texts of its children by name."""


class BrokenXml(SourceError):
    """Not well-formed; nothing in it reaches outside up to where it breaks."""

    code = "broken_xml"


class _EnoughRead(Exception):
    """There are as many records as anybody wants."""


class Records(ContentHandler):
    """Collects the elements of some names, at any depth, each with the texts right under it."""

    def __init__(self, wanted: frozenset[str], most: int, name: str) -> None:
        super().__init__()
        self.found: list[Record] = []
        self.cut = False
        self.events = 0
        """The number of events so far, of any kind."""
        self._elements = 0
        self._wanted = wanted
        self._most = most
        self._name = name
        self._depth = 0
        self._inside: int | None = None
        self._text: list[str] = []

    def startPrefixMapping(self, prefix: str | None, uri: str | None) -> None:  # noqa: N802
        if uri == _XINCLUDE:
            raise SourceError(f"{self._name} includes other files (XInclude)", hint=_HINT)

    def startElementNS(  # noqa: N802
        self, name: tuple[str | None, str], qname: str | None, attrs: Any
    ) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise SourceError(f"{self._name} has more than {MAX_ELEMENTS:,} elements", hint=_TOO_MUCH)
        self._count_event()
        self._depth += 1
        self._text = []
        if self._inside is None and name[1] in self._wanted:
            if len(self.found) == self._most:
                self.cut = True
                raise _EnoughRead
            self.found.append((name[1], {}))
            self._inside = self._depth

    def characters(self, content: str) -> None:
        self._count_event()
        if self._inside is not None and len(self._text) < MAX_TEXT:
            self._text.append(content[:MAX_TEXT])

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:  # noqa: N802
        self._count_event()
        if self._inside is not None and self._depth == self._inside + 1:
            self.found[-1][1].setdefault(name[1], "".join(self._text).strip()[:MAX_TEXT])
        if self._depth == self._inside:
            self._inside = None
        self._depth -= 1

    def _count_event(self) -> None:
        self.events += 1
        if self.events > MAX_EVENTS:
            raise SourceError(f"{self._name} has more than {MAX_EVENTS:,} tags and lines", hint=_TOO_MUCH)


def read_records(content: bytes, name: str, wanted: frozenset[str] = frozenset(), most: int = 0) -> Records:
    """Read XML. Raises `SourceError` for what reaches outside the document, `BrokenXml` where it breaks."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.sax import make_parser

    records = Records(wanted, most, name)
    parser = make_parser()
    parser.forbid_dtd = True
    parser.setFeature(feature_namespaces, True)
    parser.setContentHandler(records)
    try:
        _feed(parser, records, content, name)
    except _EnoughRead:
        pass
    except DefusedXmlException as problem:
        raise SourceError(f"{name} declares a document type or entities", hint=_HINT) from problem
    except SAXException as problem:
        raise BrokenXml(f"{name} is not well-formed XML: {problem!s:.200}") from problem
    return records


def _feed(parser: Any, records: Records, content: bytes, name: str) -> None:
    """Read piece by piece, as far as something comes of it.

    The parser holds a tag until it ends and then makes an object of each attribute, and it starts such a tag again
    with every piece. A tag that grows without end is therefore refused before it has become large.
    """
    silent = 0
    for start in range(0, max(len(content), 1), _PIECE):
        before = records.events
        parser.feed(content[start : start + _PIECE])
        silent = 0 if records.events > before else silent + _PIECE
        if silent > MAX_TAG:
            raise SourceError(f"{name} has a tag or comments of more than 1 MB", hint=_TOO_MUCH)
    parser.close()
