"""Org: headings, lists, terms, tables and blocks; what is for Emacs goes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean, one_line
from ragstone.ingest.parsers.markup.parts import MarkupPart, add_parts
from ragstone.ingest.parsers.tables import markdown_table
from ragstone.ingest.parsers.text.text import decode

MAX_DEPTH = 20
_HEADING = re.compile(
    r"(\*{1,20}) +(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED) +)?(?:\[#[A-Z]\] +)?(.*?)(?: +:[\w@#%:]+:)?"
)
_SETTING = re.compile(r"[ \t]*#\+(\w+(?:\[.*\])?):[ \t]*(.*)")
_BLOCK = re.compile(r"[ \t]*#\+begin_(\w+)\b.*", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:([\w-]+):[ \t]*")
_ITEM = re.compile(r"([ \t]*)(?:([-+])|[0-9]{1,4}[.)]|(?<=[ \t])\*)[ \t]+(?:\[[ xX-]\][ \t]+)?(.*)")
_TERM = re.compile(r"(.{1,300}?)[ \t]+::(?:[ \t]+(.*))?")
_RULE = re.compile(r"\|[-+|]+")
_LINK = re.compile(r"\[\[([^\[\]\n]{1,500})\](?:\[([^\[\]\n]{1,500})\])?\]")
_NOTE = re.compile(r"\[fn:[\w-]{0,40}\]")
_EMPHASIS = re.compile(r"(?<![\w*/=~+_])([*/=~+_])(?=\S)([^\n]{1,300}?)(?<=\S)\1(?![\w*/=~+_])")
_CODE = frozenset({"src", "example", "verbatim"})
_UNREAD = frozenset({"comment", "export"})


def parse_org(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read an Org file."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    page = _OrgPage(cleaned.text.expandtabs(8).split("\n"))
    add_parts(draft, page.read())
    return draft.finish(
        "text/org", title=page.title, metadata={"encoding": decoded.encoding}, warnings=decoded.warnings
    )


class _OrgPage:
    def __init__(self, lines: Sequence[str]) -> None:
        self.title = ""
        self._lines = lines
        self._at = 0
        self._parts: list[MarkupPart] = []
        self._items: list[tuple[int, MarkupPart]] = []
        """The open items and terms with their indents, from the outermost list inwards."""
        self._words: list[str] = []

    def read(self) -> list[MarkupPart]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if not line.strip():
                self._end_paragraph()
            elif not self._read_mark(line) and not self._read_item(line):
                self._close_items(line)
                self._words.append(line.strip())
        self._end_paragraph()
        return self._parts

    def _read_mark(self, line: str) -> bool:
        """Take a line that is not text: a heading, a block, a table, or something for Emacs."""
        if heading := _HEADING.fullmatch(line):
            self._end_paragraph()
            self._items.clear()
            self._put(MarkupPart("heading", say_org(heading[2]), level=min(len(heading[1]), 6)))
        elif block := _BLOCK.fullmatch(line):
            self._read_block(block[1].lower())
        elif setting := _SETTING.fullmatch(line):
            if setting[1].lower() == "title":
                self.title = one_line(say_org(setting[2]))
            elif setting[1].lower().startswith("caption"):
                self._end_paragraph()
                self._put(MarkupPart("paragraph", say_org(setting[2])))
        elif line.lstrip().startswith("|"):
            self._read_table(line)
        elif _DRAWER.fullmatch(line) and self._skip_drawer():
            pass
        else:
            return line.startswith(("# ", "#+")) or line.strip() in ("#", "-----")
        return True

    def _read_block(self, kind: str) -> None:
        self._end_paragraph()
        start = self._at
        closing = f"#+end_{kind}"
        while self._at < len(self._lines) and self._lines[self._at].strip().lower() != closing:
            self._at += 1
        inner = self._lines[start : self._at]
        self._at += 1
        if kind in _CODE:
            margin = min((len(line) - len(line.lstrip()) for line in inner if line.strip()), default=0)
            self._put(MarkupPart("code", "\n".join(line[margin:] for line in inner)))
        elif kind not in _UNREAD:
            self._put(MarkupPart("quote", say_org("\n".join(line.strip() for line in inner))))

    def _read_table(self, line: str) -> None:
        self._end_paragraph()
        rows = [line]
        while self._at < len(self._lines) and self._lines[self._at].lstrip().startswith("|"):
            rows.append(self._lines[self._at])
            self._at += 1
        cells = [row.strip().strip("|").split("|") for row in rows if not _RULE.fullmatch(row.strip())]
        self._put(MarkupPart("table", markdown_table([[say_org(cell.strip()) for cell in row] for row in cells])))

    def _skip_drawer(self) -> bool:
        """Pass over properties and logs up to their end; return whether there is one near."""
        for place in range(self._at, min(len(self._lines), self._at + 100)):
            if self._lines[place].strip().upper() == ":END:":
                self._at = place + 1
                return True
        return False

    def _read_item(self, line: str) -> bool:
        item = _ITEM.fullmatch(line)
        if not item:
            return False
        self._end_paragraph()
        indent = len(item[1])
        while self._items and (self._items[-1][0] >= indent or len(self._items) >= MAX_DEPTH):
            self._items.pop()
        siblings = self._items[-1][1].inside if self._items else self._parts
        if term := _TERM.fullmatch(item[3]):
            part, text = MarkupPart("term", terms=[say_org(term[1])]), term[2] or ""
        else:
            before = siblings[-1].text if siblings and siblings[-1].kind == "item" else ""
            number = int(before.rstrip(". ")) + 1 if before[:1].isdigit() else 1
            part, text = MarkupPart("item", "- " if item[2] else f"{number}. "), item[3]
        siblings.append(part)
        self._items.append((indent, part))
        self._words.append(text)
        return True

    def _close_items(self, line: str) -> None:
        """End the items that a line of text does not stand inside of."""
        indent = len(line) - len(line.lstrip())
        if self._items and indent <= self._items[-1][0]:
            self._end_paragraph()
            while self._items and indent <= self._items[-1][0]:
                self._items.pop()

    def _end_paragraph(self) -> None:
        text = say_org(" ".join(self._words)).strip()
        self._words.clear()
        if text:
            self._put(MarkupPart("paragraph", text))

    def _put(self, part: MarkupPart) -> None:
        (self._items[-1][1].inside if self._items else self._parts).append(part)


def say_org(text: str) -> str:
    """Return the words of a text: links as their names, without marks."""
    text = _LINK.sub(lambda found: found[2] or found[1].removeprefix("file:"), text)
    return _EMPHASIS.sub(r"\2", _NOTE.sub("", text))
