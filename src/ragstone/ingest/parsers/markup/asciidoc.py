"""AsciiDoc: sections, lists, terms, notes, tables and listings; files that a page names are never opened."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean
from ragstone.ingest.parsers.markup.asciidoc_words import AsciidocWords
from ragstone.ingest.parsers.markup.parts import MarkupPart, add_parts
from ragstone.ingest.parsers.tables import markdown_table
from ragstone.ingest.parsers.text.text import decode

MAX_DEPTH = 20
_NOTES = {"NOTE": "Note", "TIP": "Tip", "IMPORTANT": "Important", "WARNING": "Warning", "CAUTION": "Caution"}
_NOTE = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+(\S.*)")
_SECTION = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?[ \t]*")
_UNDERLINE = re.compile(r"([=~^+-])\1{2,}[ \t]*")
_LEVELS = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
_DELIMITER = re.compile(r"(?:-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|```[\w+-]*|~~~[\w+-]*|[|,:!]={3,})[ \t]*")
_SETTING = re.compile(r":(!?[\w][\w-]*!?):(?:[ \t]+(.*))?")
_ABOVE = re.compile(r"\[(.*)\][ \t]*")
_BLOCK_TITLE = re.compile(r"\.([^\s.].*)")
_DIRECTIVE = re.compile(r"(?:include|ifdef|ifndef|ifeval|endif|toc|image|video|audio)::(\S*?)\[(.*)\][ \t]*")
_ITEM = re.compile(r"[ \t]*(\*{1,6}|-|\.{1,6}|[0-9]{1,4}\.|[a-zA-Z]\.|<[0-9.]{1,3}>)[ \t]+(\S.*)")
_TERM = re.compile(r"[ \t]*(\S.{0,400}?)(:{2,4}|;;)(?:[ \t]+(\S.*))?[ \t]*")
_AUTHOR = re.compile(r"[^:\n]{1,80}<[^\s<>]{1,80}@[^\s<>]{1,80}>.*")
_SPACES = re.compile(r" {2,}")


def parse_asciidoc(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read an AsciiDoc page."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    lines = [line.rstrip() for line in cleaned.text.expandtabs(8).split("\n")]
    add_parts(draft, _Blocks(lines, AsciidocWords()).read())
    return draft.finish("text/asciidoc", metadata={"encoding": decoded.encoding}, warnings=decoded.warnings)


@dataclass(slots=True)
class _OpenItem:
    """An item or a term whose text is being read, and the mark it began with."""

    mark: str
    part: MarkupPart


@dataclass(slots=True)
class _Above:
    """The title and the attributes in the lines right above a block."""

    title: str = ""
    attributes: list[str] = field(default_factory=list)

    @property
    def style(self) -> str:
        return next((found.split(",")[0].split("%")[0].split(".")[0].strip() for found in self.attributes), "")


class _Blocks:
    """Reads lines into parts; what stands between delimiters is read by another one."""

    def __init__(self, lines: Sequence[str], words: AsciidocWords, depth: int = 0) -> None:
        self._lines = lines
        self._words = words
        self._depth = depth
        self._at = 0
        self._parts: list[MarkupPart] = []
        self._items: list[_OpenItem] = []
        """The open items, from the outermost list inwards."""
        self._above = _Above()
        self._attaches = False
        """True while the next block belongs to the open item."""

    def read(self) -> list[MarkupPart]:
        blanks = 0
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip():
                self._at += 1
                blanks += 1
                continue
            if line.strip() == "+" and self._items:
                self._attach(blanks)
            elif not self._read_setting(line):
                self._read_block(line, after_blank=blanks > 0)
            blanks = 0
        return self._parts

    def _attach(self, blanks: int) -> None:
        """Let the next block belong to the open item, or to one further out for each blank line above."""
        self._at += 1
        for _ in range(min(blanks, len(self._items) - 1)):
            self._items.pop()
        self._attaches = True

    def _read_setting(self, line: str) -> bool:
        """Take a line that is about the page or the next block and has no words of its own."""
        if line.startswith("//") and not line.startswith("////"):
            self._at += 1
        elif setting := _SETTING.fullmatch(line):
            self._words.set(setting[1], setting[2] or "")
            self._at += 1
        elif directive := _DIRECTIVE.fullmatch(line):
            self._at += 1
            if line.startswith("if") and directive[2] and not line.startswith("ifeval"):
                self._put(MarkupPart("paragraph", self._words.say(directive[2])))
            elif line.startswith("image"):
                self._put(MarkupPart("paragraph", self._words.say(line)))
        elif (above := _ABOVE.fullmatch(line)) and not line.startswith("[["):
            self._above.attributes.append(above[1])
            self._at += 1
        elif line.startswith("[[") and line.endswith("]]"):
            self._at += 1
        elif (title := _BLOCK_TITLE.fullmatch(line)) and not _ITEM.fullmatch(line) and not _DELIMITER.fullmatch(line):
            self._above.title = self._words.say(title[1])
            self._at += 1
        else:
            return False
        return True

    def _read_block(self, line: str, *, after_blank: bool) -> None:
        if _DELIMITER.fullmatch(line):
            self._read_delimited(line.strip())
        elif self._read_heading(line) or self._read_item(line):
            pass
        else:
            self._read_paragraph(line, after_blank=after_blank)
        self._above = _Above()
        self._attaches = False

    def _read_heading(self, line: str) -> bool:
        found = _SECTION.fullmatch(line)
        if found:
            self._at += 1
            level, words = len(found[1]), found[2]
        else:
            below = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
            if (
                not _UNDERLINE.fullmatch(below)
                or abs(len(below) - len(line)) > 2
                or not line[0].isalnum()
                or self._attaches
            ):
                return False
            self._at += 2
            level, words = _LEVELS[below[0]], line
        if self._above.style in ("discrete", "float"):
            level = max(level, 2)
        self._end_lists()
        self._put(MarkupPart("heading", self._words.say(words), level=min(level, 6)))
        if level == 1:
            self._skip_authors()
        return True

    def _skip_authors(self) -> None:
        while self._at < len(self._lines) and _AUTHOR.fullmatch(self._lines[self._at]):
            self._at += 1

    def _read_item(self, line: str) -> bool:
        if item := _ITEM.fullmatch(line):
            mark = (
                "1."
                if item[1][0].isdigit()
                else "a."
                if item[1][0].isalpha()
                else "<1>"
                if item[1][0] == "<"
                else item[1]
            )
            self._at += 1
            self._open(mark, MarkupPart("item", "- "), numbered=mark[0] in ".1a<")
            self._items[-1].part.inside.append(MarkupPart("paragraph", self._words.say(self._gather(item[2]))))
            return True
        term = _TERM.fullmatch(line)
        if not term or line.startswith("//"):
            return False
        self._at += 1
        self._open(term[2], MarkupPart("term", terms=[self._words.say(term[1])]), numbered=False)
        self._read_description(term[3] or "")
        return True

    def _read_description(self, first: str) -> None:
        """Read the paragraph of a term: on its line, right below, or behind blank lines."""
        place = self._at
        while not first and place < len(self._lines) and not self._lines[place].strip():
            place += 1
        if not first:
            line = self._lines[place].strip() if place < len(self._lines) else ""
            if not line or line == "+" or self._begins_block(self._lines[place]):
                return
            first = line
            self._at = place + 1
        if said := self._words.say(self._gather(first)):
            self._items[-1].part.inside.append(MarkupPart("paragraph", _with_note(said)))

    def _open(self, mark: str, part: MarkupPart, *, numbered: bool) -> None:
        """Begin an item: beside the open one of the same mark, or else inside the innermost open one."""
        marks = [item.mark for item in self._items]
        if mark in marks:
            del self._items[marks.index(mark) :]
        elif len(self._items) >= MAX_DEPTH:
            self._items.pop()
        siblings = self._items[-1].part.inside if self._items else self._parts
        if numbered:
            before = siblings[-1].text if siblings and siblings[-1].kind == "item" else ""
            part.text = f"{int(before.rstrip('. ')) + 1 if before[:1].isdigit() else 1}. "
        before_it = siblings[-1] if siblings else None
        if part.kind == "term" and before_it and before_it.kind == "term" and not before_it.inside:
            before_it.terms += part.terms
            part = before_it
        else:
            siblings.append(part)
        self._items.append(_OpenItem(mark, part))

    def _gather(self, first: str) -> str:
        """Return a paragraph that began with this text: the lines up to a blank one or another block."""
        gathered = [first]
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip() or line.strip() == "+" or self._begins_block(line):
                break
            if not line.startswith("//"):
                gathered.append(line.strip())
            self._at += 1
        return _SPACES.sub(" ", " ".join(piece.removesuffix(" +") for piece in gathered))

    def _begins_block(self, line: str) -> bool:
        ends_item = bool(self._items) and bool(_ITEM.fullmatch(line) or _TERM.fullmatch(line))
        return ends_item or bool(_DELIMITER.fullmatch(line) or _ABOVE.fullmatch(line) or _DIRECTIVE.fullmatch(line))

    def _read_paragraph(self, line: str, *, after_blank: bool) -> None:
        if not self._attaches and not (line.startswith(" ") and self._items):
            self._end_lists()
        if line.startswith(" ") and not self._above.style:
            self._put(MarkupPart("code", self._take_indented()))
            return
        self._at += 1
        if self._above.style in ("source", "listing", "literal"):
            self._put_titled(MarkupPart("code", "\n".join([line, *self._take_run()])))
            return
        if self._above.style == "verse":
            self._put_titled(MarkupPart("paragraph", self._words.say("\n".join([line, *self._take_run()]))))
            return
        said = self._words.say(self._gather(line))
        if self._above.style in _NOTES:
            said = f"{_NOTES[self._above.style]}: {said}"
        self._put_titled(MarkupPart("quote" if self._above.style == "quote" else "paragraph", _with_note(said)))

    def _take_run(self) -> list[str]:
        start = self._at
        while self._at < len(self._lines) and self._lines[self._at].strip():
            self._at += 1
        return list(self._lines[start : self._at])

    def _take_indented(self) -> str:
        run = self._take_run()
        margin = min((len(line) - len(line.lstrip()) for line in run), default=0)
        return "\n".join(line[margin:] for line in run)

    def _read_delimited(self, mark: str) -> None:
        if not self._attaches:
            self._end_lists()
        opening = "```" if mark.startswith("```") else "~~~" if mark.startswith("~~~") else mark
        start = self._at + 1
        end = start
        while end < len(self._lines) and self._lines[end].strip() != opening:
            end += 1
        self._at = end + 1
        inner = self._lines[start:end]
        if mark[1:].startswith("==") and mark[0] in "|,:!":
            table = read_asciidoc_table(inner, mark[0], self._above.attributes, self._words)
            self._put(MarkupPart("table", "\n".join(filter(None, (self._above.title, table)))))
        elif mark[0] in "/+":
            return
        elif mark[0] in "`~." or (mark[0] == "-" and len(mark) > 2):
            self._put_titled(MarkupPart("code", _without_callouts("\n".join(inner))))
        elif mark[0] == "_" and self._above.style == "verse":
            self._put_titled(MarkupPart("quote", self._words.say("\n".join(inner))))
        else:
            self._put_inner(inner)

    def _put_inner(self, inner: Sequence[str]) -> None:
        """Read what stands between delimiters as blocks of their own."""
        if self._depth >= MAX_DEPTH:
            self._put(MarkupPart("paragraph", self._words.say("\n".join(inner))))
            return
        parts = _Blocks(inner, self._words, self._depth + 1).read()
        said = ": ".join(filter(None, (_NOTES.get(self._above.style, ""), self._above.title)))
        if said and parts and parts[0].kind == "paragraph":
            parts[0].text = f"{said}: {parts[0].text}"
        elif said:
            self._put(MarkupPart("paragraph", said))
        for part in parts:
            self._put(part)

    def _put_titled(self, part: MarkupPart) -> None:
        if self._above.title:
            self._put(MarkupPart("paragraph", self._above.title))
        self._put(part)

    def _put(self, part: MarkupPart) -> None:
        if self._items and part.kind != "heading":
            self._items[-1].part.inside.append(part)
        else:
            self._parts.append(part)

    def _end_lists(self) -> None:
        self._items.clear()


def _with_note(text: str) -> str:
    found = _NOTE.fullmatch(text)
    return f"{_NOTES[found[1]]}: {found[2]}" if found else text


def _without_callouts(text: str) -> str:
    return re.sub(r"[ \t]*(?:<[0-9.]{1,2}>[ \t]*)+$", "", text, flags=re.MULTILINE)


_COLUMNS = re.compile(r"\bcols\s*=\s*(?:\"([^\"]{0,400})\"|'([^']{0,400})'|([^,\]\s]{1,60}))")
_TIMES = re.compile(r"([0-9]{1,2})\*")
_CELL = re.compile(r"(?:^|(?<=\s))(?:([0-9]{0,2})(?:\.[0-9]{1,2})?[+*])?(?:[<^>](?:\.[<^>])?)?[aehlmdsv]?\|(?!\|)")
MOST_COLUMNS = 50


def read_asciidoc_table(lines: Sequence[str], mark: str, attributes: Sequence[str], words: AsciidocWords) -> str:
    """Return the lines between the marks of a table as Markdown."""
    said = ",".join(attributes)
    separated = mark in ",:" or "format=csv" in said.replace('"', "")
    if separated:
        rows = [
            [words.say(cell.strip()) for cell in row]
            for row in csv.reader(lines, delimiter=":" if mark == ":" else ",")
        ]
        return markdown_table(rows)
    cells = list(_cells(lines))
    width = _count_columns(said) or next((count for count in _cells_per_line(lines) if count), 1)
    texts = [words.say(" ".join(cell.split())) for cell in cells]
    return markdown_table([texts[start : start + width] for start in range(0, len(texts), width)])


def _count_columns(said: str) -> int:
    found = _COLUMNS.search(said)
    if not found:
        return 0
    count = 0
    for column in re.split(r"[,;]", next(filter(None, found.groups()), "")):
        times = _TIMES.search(column)
        count += int(times[1]) if times else 1
    return min(count, MOST_COLUMNS)


def _cells_per_line(lines: Sequence[str]) -> Iterator[int]:
    return (sum(1 for _ in _CELL.finditer(line)) for line in lines)


def _cells(lines: Sequence[str]) -> Iterator[str]:
    """Yield the text of each cell, which may go on over several lines; one that spans columns leaves them empty."""
    cell: list[str] = []
    spanned = 0
    for line in lines:
        place = 0
        for found in _CELL.finditer(line):
            cell.append(line[place : found.start()])
            if spanned:
                yield "\n".join(cell)
                yield from [""] * (spanned - 1)
            cell, place = [], found.end()
            spanned = max(1, min(int(found[1] or 1), MOST_COLUMNS)) if "+" in found[0] else 1
        cell.append(line[place:])
    if spanned:
        yield "\n".join(cell)
