"""DocBook: a manual in XML, read as the web page that it would become. No entity or file that it names is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape, unescape
from html.entities import html5

from ragstone.core.errors import ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, ParseOptions
from ragstone.ingest.parsers.text.text import decode
from ragstone.ingest.parsers.web.html import parse_html

_WRITTEN_OTHERWISE = re.compile(
    r"(?P<kept><!\[CDATA\[.*?(?:\]\]>|\Z))"
    r"|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)"
    r"|<keycombo\b[^<>]*>(?P<keys>.{0,2000}?)</keycombo\s*>"
    r"|<menuchoice\b[^<>]*>(?P<menu>.{0,2000}?)</menuchoice\s*>",
    re.DOTALL,
)
"""Comments and instructions to programs, which are not read, and what is printed with signs between its parts."""
_KEYCOMBO = re.compile(r"</?keycombo\b[^<>]*>")
_KEY = re.compile(r"</?(?:keycap|keycode|keysym|mousebutton)\b[^<>]*>|(&[A-Za-z][\w.-]{0,60};)")
_MENU_ENTRY = re.compile(r"</?(?:gui\w+|interface)\b[^<>]*>")
_SHORTCUT = re.compile(r"<shortcut\b[^<>]*>(.*?)</shortcut\s*>", re.DOTALL)
_QUOTED = r"\"[^\"]*\"|'[^']*'"
_DOCTYPE = re.compile(rf"\s*<!DOCTYPE(?:[^\[>\"']|{_QUOTED})*(?:\[((?:[^\]\"']|{_QUOTED})*)\]\s*)?>")
_DECLARED = re.compile(rf"<!ENTITY\s+([A-Za-z][\w.-]{{0,60}})\s+({_QUOTED})\s*>")
_LONGEST_ENTITY = 500
_MOST_EXPANDED = 1_000_000
_TAG = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)|<(/?)([A-Za-z][\w.:-]{0,60})(?=[\s/>])[^<>]*?(/?)>", re.DOTALL)
_ENTITY = re.compile(r"&([A-Za-z][\w.-]{0,60});")
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
_INFORMATION = frozenset({"info", *(f"{name}info" for name in _SECTIONS)})
"""Elements that say who wrote a section and when; its title may stand there, too."""
_UNSEEN = _INFORMATION | {
    "refmeta", "indexterm", "remark", "index", "toc", "colspec", "spanspec", "imageobject", "inlinegraphic",
}  # fmt: skip
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
    text = _WRITTEN_OTHERWISE.sub(_write_as_printed, decode(content, name).text.lstrip("\ufeff"))
    stated = _DOCTYPE.match(text)
    declared, body = ((stated[1] or ""), text[stated.end() :]) if stated else ("", text)
    page = "".join(_WebPage(name, declared).write(body))
    parsed = parse_html(f"<!doctype html><meta charset=utf-8><body>{page}</body>".encode(), name, options)
    return replace(parsed, media_type="application/docbook+xml")


def _write_as_printed(found: re.Match[str]) -> str:
    """Return examples as they are, keys with a plus and menus with an arrow between them, and nothing of comments."""
    if found["keys"]:
        return _join_keys(found["keys"])
    if not found["menu"]:
        return found["kept"] or ""
    names = (" ".join(name.split()) for name in _MENU_ENTRY.split(_SHORTCUT.sub("", found["menu"])))
    path = " → ".join(filter(None, names))
    shortcut = _SHORTCUT.search(found["menu"])
    return f"{path} ({_join_keys(shortcut[1])})" if shortcut else path


def _join_keys(keys: str) -> str:
    names = (" ".join(name.split()) for name in _KEY.split(_KEYCOMBO.sub("", keys)) if name)
    return "+".join(filter(None, names))


class _WebPage:
    """Writes the elements of a manual as those of a web page."""

    def __init__(self, name: str, declared: str) -> None:
        self._name = name
        self._open: list[str] = []
        self._hidden: list[int] = []
        """Holds what each open element adds to the count of those that hide what is in them."""
        self._titled: set[int] = set()
        """The places of those open sections whose title was read."""
        self._room = _MOST_EXPANDED
        self._entities: dict[str, str] = {}
        for entity, quoted in _DECLARED.findall(declared):
            # Only those above are known within one: none can hold itself.
            self._entities.setdefault(entity, self._resolve(_TAG.sub("", quoted[1:-1]))[:_LONGEST_ENTITY])

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
        if not self._is_unseen():
            yield escape(self._resolve(words), quote=False)

    def _resolve(self, words: str) -> str:
        """Return words with what entities stand for; an unknown one by its name, which is often that of a program."""
        return unescape(_ENTITY.sub(self._put_in, words))

    def _put_in(self, found: re.Match[str]) -> str:
        value = self._entities.get(found[1], "") if self._room > 0 else ""
        self._room -= len(value)
        return escape(value, quote=False) or (found[0] if f"{found[1]};" in html5 else found[1])

    def _start(self, name: str) -> Iterator[str]:
        if len(self._open) == _DEEPEST:
            raise ParseError(f"{self._name} is nested too deep to be read", hint="simplify the file")
        self._open.append(name)
        self._hidden.append(self._hides(name))
        if not self._is_unseen():
            tag = self._tag_of(name)
            yield f"<{tag}>" if tag else ""
            yield f"<p>{_NOTES[name]}:</p>" if name in _NOTES else ""

    def _close(self, name: str) -> Iterator[str]:
        if name not in self._open:
            return
        while True:
            last = self._open[-1]
            tag = "" if self._is_unseen() else self._tag_of(last)
            self._open.pop()
            self._hidden.pop()
            self._titled.discard(len(self._open))
            yield f"</{tag}>" if tag else ""
            yield " — " if last == "refname" and not self._is_unseen() else ""
            if last == name:
                return

    def _is_unseen(self) -> bool:
        return sum(self._hidden) > 0

    def _hides(self, name: str) -> int:
        """Return 1 for an element that is not read, -1 for a title in one that is read all the same, 0 for others."""
        if name != "title":
            return int(name in _UNSEEN)
        informs = len(self._open) > 1 and self._open[-2] in _INFORMATION
        place = len(self._open) - 2 - informs
        is_first = place not in self._titled
        self._titled.add(place)
        return -1 if informs and is_first else 0

    def _tag_of(self, name: str) -> str:
        """Return the element of a web page for the innermost open element; empty where there is none."""
        above = [one for one in self._open[-3:-1] if one not in _INFORMATION]
        over = above[-1] if above else ""
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
