"""DocBook: a manual in XML, read as the web page that it would become. No entity or file that it names is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape, unescape

from ragstone.core.errors import ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, ParseOptions
from ragstone.ingest.parsers.text.text import decode
from ragstone.ingest.parsers.web.html import parse_html

_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*")
_TAG = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)|<(/?)([A-Za-z][\w.:-]{0,60})(?=[\s/>])[^<>]*?(/?)>", re.DOTALL)
_ENTITY = re.compile(r"&([A-Za-z][\w.-]{0,60});")
_HEAD = 4096
_LOWEST_HEADING = 6
_DEEPEST = 300
_SECTIONS = frozenset(
    [
        "book",
        "part",
        "article",
        "chapter",
        "appendix",
        "preface",
        "glossary",
        "section",
        "simplesect",
        "refentry",
        "refsection",
        "qandadiv",
        "refsynopsisdiv",
        "sect1",
        "sect2",
        "sect3",
        "sect4",
        "sect5",
        "refsect1",
        "refsect2",
        "refsect3",
    ]
)
_UNSEEN = frozenset(
    [
        "info",
        "bookinfo",
        "articleinfo",
        "chapterinfo",
        "sectioninfo",
        "sect1info",
        "sect2info",
        "refentryinfo",
        "refmeta",
        "indexterm",
        "remark",
        "index",
        "toc",
        "colspec",
        "spanspec",
        "imageobject",
        "inlinegraphic",
    ]
)
"""Elements whose content no reader of the manual sees as its text."""
_TAGS = {
    "para": "p", "simpara": "p", "formalpara": "div", "itemizedlist": "ul", "simplelist": "ul", "orderedlist": "ol",
    "procedure": "ol", "substeps": "ol", "listitem": "li", "member": "li", "step": "li", "variablelist": "dl",
    "glosslist": "dl", "varlistentry": "div", "glossentry": "div", "term": "dt", "glossdef": "dd", "calloutlist": "ul",
    "callout": "li", "programlisting": "pre", "screen": "pre", "literallayout": "pre", "synopsis": "pre",
    "table": "table", "informaltable": "table", "thead": "thead", "tbody": "tbody", "row": "tr", "entry": "td",
    "blockquote": "blockquote", "refnamediv": "p", "cmdsynopsis": "p", "question": "h6", "answer": "div", "sbr": "br",
}  # fmt: skip
_NOTES = {"note": "Note", "tip": "Tip", "warning": "Warning", "caution": "Caution", "important": "Important"}


def parse_docbook(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a manual, a chapter or a page of one."""
    text = _HIDDEN.sub("", _drop_doctype(decode(content, name).text))
    page = "".join(_WebPage(name).write(text))
    parsed = parse_html(f"<!doctype html><meta charset=utf-8><body>{page}</body>".encode(), name, options)
    return replace(parsed, media_type="application/docbook+xml")


def _drop_doctype(text: str) -> str:
    """Return a text behind the declaration of its type, which may hold entities of its own."""
    stated = _DOCTYPE.search(text, 0, _HEAD)
    if stated is None:
        return text
    inner = text.find("]", stated.end()) if text.startswith("[", stated.end()) else stated.end()
    return text[text.find(">", max(inner, stated.end())) + 1 :]


def _name_entity(found: re.Match[str]) -> str:
    """Return an entity as it is, or its name if the file itself does not say what it stands for: often a program."""
    return found[0] if unescape(found[0]) != found[0] else found[1]


class _WebPage:
    """Writes the elements of a manual as those of a web page."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[str] = []
        self._unseen = 0

    def write(self, text: str) -> Iterator[str]:
        place = 0
        for found in _TAG.finditer(text):
            yield from self._say(text[place : found.start()])
            place = found.end()
            if found[1] is not None:
                yield from self._say(escape(found[1]))
                continue
            name = found[3].rpartition(":")[2]
            if found[2]:
                yield from self._close(name)
            else:
                yield from self._start(name)
                if found[4]:
                    yield from self._close(name)
        yield from self._say(text[place:])

    def _say(self, words: str) -> Iterator[str]:
        if not self._unseen:
            yield escape(unescape(_ENTITY.sub(_name_entity, words)), quote=False)

    def _start(self, name: str) -> Iterator[str]:
        if len(self._open) == _DEEPEST:
            raise ParseError(f"{self._name} is nested too deep to be read", hint="simplify the file")
        self._open.append(name)
        self._unseen += name in _UNSEEN
        if not self._unseen:
            tag = self._tag_of(name)
            yield f"<{tag}>" if tag else ""
            yield f"<p>{_NOTES[name]}:</p>" if name in _NOTES else ""

    def _close(self, name: str) -> Iterator[str]:
        if name not in self._open:
            return
        while True:
            last = self._open[-1]
            tag = "" if self._unseen else self._tag_of(last)
            self._open.pop()
            self._unseen -= last in _UNSEEN
            yield f"</{tag}>" if tag else ""
            yield " — " if last == "refname" and not self._unseen else ""
            if last == name:
                return

    def _tag_of(self, name: str) -> str:
        """Return the element of a web page for the innermost open element; empty where there is none."""
        over = self._open[-2] if len(self._open) > 1 else ""
        if name == "title":
            depth = sum(one in _SECTIONS for one in self._open)
            return (
                f"h{min(max(depth, 1), _LOWEST_HEADING)}" if over in _SECTIONS or not over else self._title_within(over)
            )
        if name == "listitem" and over == "varlistentry":
            return "dd"
        if name == "glossterm":
            return "dt" if over == "glossentry" else ""
        if name == "entry" and "thead" in self._open:
            return "th"
        return "section" if name in _SECTIONS else "div" if name in _NOTES else _TAGS.get(name, "")

    @staticmethod
    def _title_within(over: str) -> str:
        return "caption" if over in ("table", "informaltable") else "p"
