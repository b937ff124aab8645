"""RTF: paragraphs, headings and tables out of groups and control words, in one pass over the bytes."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, chosen_title, one_line
from ragstone.ingest.parsers.tables import markdown_table

MEDIA_TYPE = "application/rtf"
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,9})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|[\r\n\x00]+|([^\\{}\r\n\x00]+)|.", re.DOTALL
)
_TEXT, _NOWHERE = "text", ""
_UNREAD = (
    "fonttbl colortbl stylesheet pict objdata header headerl headerr headerf footer footerl footerr "
    "footerf listtable listoverridetable revtbl info xe tc nonshppict themedata datastore generator"
)
_DESTINATIONS = {
    **dict.fromkeys((word.encode() for word in _UNREAD.split()), _NOWHERE),
    b"shptxt": _TEXT,
    b"title": "title",
    b"author": "author",
}
_SIGNS = {
    b"tab": "\t", b"line": "\n", b"emdash": "—", b"endash": "–", b"bullet": "•", b"lquote": "‘", b"rquote": "’",
    b"ldblquote": "“", b"rdblquote": "”", b"emspace": " ", b"enspace": " ", b"nestcell": " ", b"nestrow": " ",
    b"~": "\u00a0", b"_": "-", b"{": "{", b"}": "}", b"\\": "\\",
}  # fmt: skip
_ENDS = {b"par", b"sect", b"page", b"\n", b"\r"}
_CHARSETS = {128: "cp932", 129: "cp949", 134: "gbk", 136: "big5", 161: "cp1253", 162: "cp1254", 163: "cp1258"}
_CHARSETS |= {177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250"}


class _State(NamedTuple):
    """The state that holds until the end of a group."""

    place: str = _TEXT
    codec: str = ""
    fallback: int = 1
    """Characters behind a Unicode one that replace it in programs without Unicode."""
    hidden: bool = False


def parse_rtf(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a document of a word processor."""
    reader = _RtfReader(Draft(name))
    reader.read(content)
    said = {what: one_line(_whole(pieces)) for what, pieces in reader.said.items()}
    metadata = {"author": said["author"][:1000]} if chosen_title(said["author"]) else {}
    return reader.draft.finish(MEDIA_TYPE, title=chosen_title(said["title"]), metadata=metadata)


class _RtfReader:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.said: dict[str, list[str]] = {_TEXT: [], "title": [], "author": []}
        self._state = _State()
        self._above: list[_State] = []
        self._bytes = bytearray()
        self._codec = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._passing = 0
        self._in_table = False
        self._level = 0
        self._cells: list[str] = []
        self._rows: list[list[str]] = []

    def read(self, content: bytes) -> None:
        place = 0
        while found := _TOKEN.match(content, place):
            place = found.end()
            word, number, code, symbol, brace, text = found.groups()
            if code:
                self._add_bytes(bytes.fromhex(code.decode()))
            elif text:
                self._add_bytes(text)
            elif brace == b"{":
                self._above.append(self._state)
            elif brace:
                self._flush()
                self._state, self._passing = self._above.pop() if self._above else self._state, 0
            elif word == b"bin":
                place += max(0, int(number or 0))
            elif word or symbol:
                self._control(word or symbol, int(number) if number else None)
        self._end_paragraph()
        self._end_table()

    def _control(self, word: bytes, number: int | None) -> None:
        if word == b"u" and number is not None:
            self._flush()
            self._put(chr(number % 0x10000))
            self._passing = self._state.fallback
        elif self._passing and (word in _SIGNS or word in _ENDS):
            self._passing -= 1
        elif word in _SIGNS:
            self._flush()
            self._put(_SIGNS[word])
        elif word == b"*":
            self._enter(_NOWHERE)
        elif word in _DESTINATIONS and (self._state.place == _TEXT or _DESTINATIONS[word]):
            self._enter(_DESTINATIONS[word])
        elif word in (b"f", b"fcharset", b"ansicpg", b"uc", b"v", b"plain"):
            self._set(word, number)
        elif self._state.place == _TEXT:
            self._layout(word, number)

    def _set(self, word: bytes, number: int | None) -> None:
        self._flush()
        if word == b"f":
            self._font = number or 0
            self._state = self._state._replace(codec=self._fonts.get(self._font, ""))
        elif word == b"fcharset":
            self._fonts[self._font] = _CHARSETS.get(number or 0, "")
        elif word == b"ansicpg":
            self._codec = _find_codec(f"cp{number}")
        elif word == b"uc":
            self._state = self._state._replace(fallback=min(max(number or 0, 0), 10))
        else:
            self._state = self._state._replace(hidden=word == b"v" and number != 0)

    def _layout(self, word: bytes, number: int | None) -> None:
        self._flush()
        if word == b"pard":
            self._in_table, self._level = False, 0
        elif word == b"intbl":
            self._in_table = True
        elif word == b"outlinelevel":
            self._level = (number or 0) + 1 if 0 <= (number or 0) < 6 else 0
        elif word in _ENDS:
            if self._in_table:
                self._put(" ")
            else:
                self._end_paragraph()
        elif word == b"cell":
            self._cells.append(self._take_text())
        elif word == b"row":
            self._rows.append(self._cells)
            self._cells = []

    def _enter(self, place: str) -> None:
        self._flush()
        self._state = self._state._replace(place=place)

    def _add_bytes(self, raw: bytes) -> None:
        if self._passing:
            raw, self._passing = raw[self._passing :], max(0, self._passing - len(raw))
        if self._state.place and not self._state.hidden:
            self._bytes += raw

    def _flush(self) -> None:
        if self._bytes:
            self._put(self._bytes.decode(self._state.codec or self._codec, "replace"))
            self._bytes.clear()

    def _put(self, text: str) -> None:
        if self._state.place and not self._state.hidden:
            self.said[self._state.place].append(text)

    def _take_text(self) -> str:
        pieces = self.said[_TEXT]
        text = _whole(pieces)
        pieces.clear()
        return text

    def _end_paragraph(self) -> None:
        self._flush()
        text = self._take_text()
        if text.strip():
            self._end_table()
            heading = one_line(text) if self._level else ""
            self.draft.add("heading" if heading else "paragraph", heading or text, level=self._level, label=heading)

    def _end_table(self) -> None:
        self.draft.add("table", markdown_table([*self._rows, self._cells]))
        self._rows, self._cells = [], []


def _find_codec(codec: str) -> str:
    try:
        return codecs.lookup(codec).name
    except LookupError:
        return "cp1252"


def _whole(pieces: list[str]) -> str:
    """Return the text, halves of characters beyond the first 65,536 put together."""
    return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
