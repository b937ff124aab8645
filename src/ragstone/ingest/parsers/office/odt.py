"""ODT and ODP: turned into HTML and read through the HTML walker, a presentation slide by slide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

from ragstone.core.errors import ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions
from ragstone.ingest.parsers.office.odf import (
    DRAW,
    OFFICE,
    PRESENTATION,
    STYLE,
    TABLE,
    TEXT,
    UNREAD,
    OdfFile,
    join_words,
    read_break,
    read_count,
)
from ragstone.ingest.parsers.web.html import MOST_SPANNED, add_markup

_TYPE = "application/vnd.oasis.opendocument"
_NO_TEXT = "its slides may hold nothing but pictures; save it as PDF to have them read by OCR"
_OBJECT = f"{DRAW}object"
_P, _H, _LIST, _NOTE = (f"{TEXT}{tag}" for tag in ("p", "h", "list", "note"))
_TABLE, _CELL, _COVERED = (f"{TABLE}{tag}" for tag in ("table", "table-cell", "covered-table-cell"))
_BLOCKS = frozenset({_P, _H, _LIST, _TABLE})
_TAGS = {_TABLE: "table", f"{TABLE}table-header-rows": "thead", f"{TABLE}table-row": "tr"}
_CLASS = f"{PRESENTATION}class"
_FRAME_CLASSES = frozenset({"page-number", "date-time", "footer", "header"})
_PLAIN = ("", "p")
_OF_A_SHAPE = ("p", "")
"""Lines of a shape on a slide are one paragraph, up to an empty one."""
_ROLES = {
    "Title": ("", "h1"),
    "Quotations": ("blockquote", "p"),
    "Quote": ("blockquote", "p"),
    "Preformatted_20_Text": ("pre", ""),
    "List_20_Heading": ("dl", "dt"),
    "List_20_Contents": ("dl", "dd"),
}
"""The HTML elements of a paragraph by its style: one that it shares with its neighbours, and its own."""
_CODE = _ROLES["Preformatted_20_Text"]
_BODY_STYLES = frozenset({"Standard", "Text_20_body"})
_FIXED_PITCH = re.compile(r"courier|\bmono|consol|fixed", re.IGNORECASE)
_MOST_PARENTS = 20
_MOST_NUMBER = 100_000


def parse_odt(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a word processor's document: headings, lists, tables, notes."""
    file = OdfFile(content, name, "ODT", options)
    tree = file.read_tree("content.xml")
    draft = Draft(name)
    add_markup(draft, _Markup(_Styles(file, tree)).convert([_find_body(file, tree, "text")]))
    properties = file.read_properties()
    return draft.finish(f"{_TYPE}.text", title=properties.pop("title", ""), metadata=properties)


def parse_odp(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a presentation."""
    file = OdfFile(content, name, "ODP", options)
    tree = file.read_tree("content.xml")
    slides = _find_body(file, tree, "presentation").findall(f"{DRAW}page")
    options.check_pages(len(slides), name, "slides")
    styles = _Styles(file, tree)
    draft = Draft(name)
    for number, slide in enumerate(slides, start=1):
        draft.page = number
        if slide.get(f"{DRAW}style-name") in styles.hiding:
            draft.warnings.append(f"hidden slide {number} was left out")
        else:
            _add_slide(draft, slide, styles)
    properties = file.read_properties()
    title = properties.pop("title", "")
    metadata = {**properties, "pages": len(slides)}
    return draft.finish(f"{_TYPE}.presentation", title=title, metadata=metadata, unseen_hint=_NO_TEXT)


def _find_body(file: OdfFile, tree: Any, tag: str) -> Any:
    body = tree.find(f"{OFFICE}body/{OFFICE}{tag}")
    if body is None:
        raise ParseError(
            f"{file.name} is a damaged {file.kind}: it has no body",
            hint="open it in the program it was made with and save it again",
        )
    return body


def _add_slide(draft: Draft, slide: Any, styles: _Styles) -> None:
    shapes = sorted(slide, key=lambda shape: shape.get(_CLASS) != "title")
    add_markup(draft, _Markup(styles, _OF_A_SHAPE).convert(shapes))
    for shape in slide.iterfind(f"{PRESENTATION}notes/*"):
        if shape.get(_CLASS) == "notes" and (words := join_words(shape)):
            draft.add("paragraph", f"Notes: {words}")


class _Styles:
    """The styles of a document: the roles of its paragraphs, the numbered lists, the hidden slides."""

    def __init__(self, file: OdfFile, tree: Any) -> None:
        self.file = file
        self._parents: dict[str, str] = {}
        self._fonts: dict[str, str] = {}
        self.numbered: set[tuple[str, int]] = set()
        self.hiding: set[str] = set()
        root = file.read_tree("styles.xml")
        shared = root.find(f"{OFFICE}styles") if root is not None else None
        for styles in (shared, tree.find(f"{OFFICE}automatic-styles")):
            for style in styles if styles is not None else ():
                self._read(style, style.get(f"{STYLE}name", ""))

    def role(self, name: str) -> tuple[str, str] | None:
        """Return the HTML elements of a paragraph whose style makes it a special one; a typewriter's font is code's."""
        font = ""
        for _ in range(_MOST_PARENTS):
            if name in _ROLES or name in _BODY_STYLES or not name:
                break
            font = font or self._fonts.get(name, "")
            name = self._parents.get(name, "")
        return _ROLES.get(name) or (_CODE if _FIXED_PITCH.search(font) else None)

    def _read(self, style: Any, name: str) -> None:
        if style.get(f"{STYLE}family") == "paragraph":
            self._parents[name] = style.get(f"{STYLE}parent-style-name", "")
        for part in style:
            if part.tag == f"{STYLE}text-properties":
                self._fonts[name] = part.get(f"{STYLE}font-name", "")
            elif part.get(f"{PRESENTATION}visibility") == "hidden":
                self.hiding.add(name)
            elif part.tag == f"{TEXT}list-level-style-number" and part.get(f"{STYLE}num-format"):
                self.numbered.add((name, read_count(part, f"{TEXT}level", MOST_SPANNED)))


class _Markup:
    """Turns elements into HTML, in a loop: a file may be nested deeper than functions can call each other."""

    def __init__(self, styles: _Styles, plain: tuple[str, str] = _PLAIN) -> None:
        self._styles = styles
        self._plain = plain
        self._out: list[str] = []
        self._waiting: list[Any] = []
        """Elements to read, HTML to write, and lists of boxes to read behind the paragraph that they are tied to."""
        self._boxes: list[Any] | None = None
        self._notes: list[str] = []
        self._lists: list[str] = []
        self._tables = 0
        self._numbers: dict[tuple[str, int], int] = {}

    def convert(self, elements: Iterable[Any]) -> str:
        """Return HTML of the elements, notes at the end."""
        self._waiting = list(elements)[::-1]
        while self._waiting:
            item = self._waiting.pop()
            if isinstance(item, str):
                self._close(item)
            elif isinstance(item, list):
                self._boxes = None
                self._waiting += item[::-1]
            elif item.tag not in UNREAD and item.tag != _COVERED and item.get(f"{TEXT}display") != "none":
                self._read(item)
        return "".join((*self._out, *self._notes))

    def _close(self, markup: str) -> None:
        self._out.append(markup)
        if markup in ("</ol>", "</ul>"):
            self._lists.pop()
        elif markup == "</table>":
            self._tables -= 1

    def _read(self, element: Any) -> None:
        tag = element.tag
        if self._boxes is not None and (tag in _BLOCKS or tag.startswith(DRAW)):
            self._boxes.append(element)
        elif tag == _NOTE:
            self._add_note(element)
        elif tag == _OBJECT:
            table = self._styles.file.find_table(element)
            self._waiting += [] if table is None else [table]
        elif element.get(_CLASS) == "title" and not self._out:
            self._out.append(f"<h1>{escape(join_words(element))}</h1>")
        elif tag == _P and self._plain is _OF_A_SHAPE and not (len(element) or element.text):
            self._out.append("\n")
        elif element.get(_CLASS) not in _FRAME_CLASSES:
            self._open(element)
            if self._boxes is not None and tag not in _BLOCKS:
                self._out.append(escape(read_break(element)).replace("\n", "<br>"))
            self._wait_for(element)

    def _wait_for(self, element: Any) -> None:
        in_paragraph = self._boxes is not None
        if in_paragraph:
            self._out.append(escape(element.text or ""))
        for child in reversed(element):
            if in_paragraph and child.tail:
                self._waiting.append(escape(child.tail))
            self._waiting.append(child)

    def _open(self, element: Any) -> None:
        """Write the start of an element, and put its end behind what it holds."""
        tag = element.tag
        if tag in (_P, _H):
            self._open_paragraph(element)
        elif tag == _LIST:
            self._open_list(element)
        elif tag == f"{TEXT}list-item" and len(element) and element[0].tag != _LIST:
            self._write("li")
        elif tag == _CELL:
            across = read_count(element, f"{TABLE}number-columns-spanned", MOST_SPANNED)
            across *= read_count(element, f"{TABLE}number-columns-repeated", MOST_SPANNED)
            down = read_count(element, f"{TABLE}number-rows-spanned", MOST_SPANNED)
            self._write("td", f' colspan="{across}" rowspan="{down}"')
        elif tag.startswith(DRAW):
            self._write("div")
        elif tag in _TAGS:
            self._tables += tag == _TABLE
            self._write(_TAGS[tag])

    def _write(self, tag: str, attributes: str = "") -> None:
        self._out.append(f"<{tag}{attributes}>")
        self._waiting.append(f"</{tag}>")

    def _write_shared(self, tag: str) -> None:
        """Go on with an element that has just ended: neighbours of one kind are one block."""
        if self._out[-1:] == [f"</{tag}>"]:
            self._out[-1] = "<br>" if tag == "p" else "\n"
            self._waiting.append(f"</{tag}>")
        else:
            self._write(tag)

    def _open_paragraph(self, element: Any) -> None:
        shared, own = self._styles.role(element.get(f"{TEXT}style-name", "")) or self._plain
        if element.tag == _H:
            shared, own = "", f"h{read_count(element, f'{TEXT}outline-level', 6)}"
        elif self._tables:
            shared, own = self._plain
        self._boxes = []
        self._waiting.append(self._boxes)
        if shared:
            self._write_shared(shared)
        if own:
            self._write(own)

    def _open_list(self, element: Any) -> None:
        style = element.get(f"{TEXT}style-name") or (self._lists[-1] if self._lists else "")
        self._lists.append(style)
        place = style, len(self._lists)
        if place not in self._styles.numbered:
            self._write_shared("ul")
            return
        goes_on = element.get(f"{TEXT}continue-numbering") == "true" or element.get(f"{TEXT}continue-list")
        first = self._numbers.get(place, 0) + 1 if goes_on else 1
        items = [item for item in element if len(item) and item[0].tag != _LIST]
        if items and items[0].get(f"{TEXT}start-value"):
            first = read_count(items[0], f"{TEXT}start-value", _MOST_NUMBER)
        self._numbers[place] = first + len(items) - 1
        self._write("ol", f' start="{first}"')

    def _add_note(self, note: Any) -> None:
        citation, body = note.find(f"{TEXT}note-citation"), note.find(f"{TEXT}note-body")
        label = escape(f"[{join_words(citation)}]") if citation is not None else ""
        self._out.append(label)
        if body is not None:
            self._notes.append(f"<p>{label} {escape(join_words(body))}</p>")
