"""The shared means of parsers: kinds of files, options, the cleaning of text, and the draft of a `Parsed`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from ragstone.core.errors import EmptyDocument, NoTextSeen, ParserLimit
from ragstone.core.types import Block, BlockKind, Json, Parsed
from ragstone.ingest.parsers.blobs import drop_blobs

_SUFFIXES = {
    "text": ".txt .text .log",
    "rst": ".rst .rest",
    "asciidoc": ".adoc .asciidoc .asc",
    "man": ".1 .2 .3 .4 .5 .6 .7 .8 .9 .man .mdoc",
    "docbook": ".docbook .dbk",
    "info": ".info",
    "markdown": ".md .markdown .mdx",
    "org": ".org",
    "notebook": ".ipynb",
    "subtitles": ".srt .vtt",
    "html": ".html .htm .xhtml",
    "pdf": ".pdf",
    "docx": ".docx",
    "rtf": ".rtf",
    "pptx": ".pptx",
    "xlsx": ".xlsx",
    "xls": ".xls .xlt",
    "odt": ".odt .ott .fodt",
    "ods": ".ods .ots .fods",
    "odp": ".odp .otp .fodp",
    "csv": ".csv .tsv",
    "epub": ".epub",
    "json": ".json .jsonl .ndjson",
    "mail": ".eml",
    "outlook": ".msg",
    "image": ".png .jpg .jpeg .webp .bmp .tif .tiff",
    "code": ".py .js .mjs .cjs .jsx .ts .tsx .go .rs .java",
}
KINDS = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
"""The parsers by the suffix of the files that they read."""
SCANS_PER_WINDOW = 4
"""A window ends early after so many pages read by OCR, each of which takes seconds."""
# Joiners shape letters in these scripts (Arabic to Sinhala, Myanmar to Mongolian) and join emoji; elsewhere they hide.
_JOINING = "\u0600-\u0dff\u1000-\u109f\u1780-\u18af"
_EMOJI = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_HIDDEN = re.compile(
    f"(?<![{_JOINING}])\u200c"
    f"|(?<![{_JOINING}{_EMOJI}])(?<![{_EMOJI}]\ufe0f)\u200d"
    f"|(?<![{_EMOJI}])[\ufe0e\ufe0f](?!\u20e3)"
    "|[\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufe00-\ufe0d\U000e0000-\U000e01ef]"
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\ufdd0-\ufdef\ufffe\uffff]")
_UNCLEAN_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_MARKS = 30
"""No language sets more marks on one letter; composing a tower of them takes quadratic time."""
_MAY_BE_TOWER = re.compile(f"[\u0300-\U0010ffff]{{{_MOST_MARKS + 1}}}")
_LAST_MARK = 0x1FFFF
_IDEOGRAPHS = "\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_BREAK_AMONG_IDEOGRAPHS = re.compile(f"(?<=[{_IDEOGRAPHS}])[ \t]*+\r?\n\\s*+(?=[{_IDEOGRAPHS}])")
_UNCHOSEN = re.compile(
    r"(?i)\(?(?:untitled(?:[ -]?document)?|unspecified|anonymous|no title|document|presentation)[ -]?\d*\)?"
    r"|microsoft \w+ - .*|word document|powerpoint presentation"
    r"|.*\.(?:docx?|pptx?|xlsx?|rtf|od[tsp]|indd|qxd|tex|dvi|ps|pdf)"
)
MAX_BLOCKS = 250_000
MAX_CHARS = 64 * 1024 * 1024
"""More than the pool takes from any file: what goes beyond is stopped before it fills the memory."""
GAP = "\n\n"
MAX_TITLE = 500


def is_picture(name: str) -> bool:
    """Return whether a file of this name is read by OCR."""
    return KINDS.get(PurePosixPath(name).suffix.lower()) == "image"


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Sent to the child with each file; every parser gets it and reads what concerns it."""

    pages: int = 5000
    """The most pages that a document may have; the pool puts its own limit here."""
    ocr: bool = True
    tables: bool = True
    first_page: int = 1
    window: int = 0
    """Read this many pages from `first_page` on and say where to go on; 0 means all. A part may hold no text."""
    unpacked_mb: int = 1000
    """The most that the parts of a compressed file may hold together."""

    def check_pages(self, total: int, name: str, unit: str = "pages") -> None:
        """Refuse a document that has more pages than the settings allow."""
        if total > self.pages:
            raise ParserLimit(
                f"{name} has {total:,} {unit}; the limit is {self.pages:,}",
                hint="split it, or raise limits.pages in the settings",
            )

    def asked_pages(self, total: int) -> range:
        """Return the numbers of the pages to read of a document that has so many."""
        last = min(total, self.first_page + self.window - 1) if self.window else total
        return range(self.first_page, last + 1)


DEFAULT = ParseOptions()


class Cleaned(NamedTuple):
    """Text as it may be stored, and how many hidden characters were taken out of it."""

    text: str
    hidden: int


def clean(text: str) -> Cleaned:
    """Return text with Unix line ends, composed letters and plain spaces, without anything invisible."""
    if text.isascii() and not _UNCLEAN_ASCII.search(text):
        return Cleaned(text, 0)
    text = _SURROGATE.sub("\ufffd", _LINE_END.sub("\n", text))
    text, hidden = _HIDDEN.subn("", _CONTROL.sub("", text))
    if _MAY_BE_TOWER.search(text):
        length = len(text)
        text = _towers().sub(r"\1", text)
        hidden += length - len(text)
    return Cleaned(unicodedata.normalize("NFC", _SPACE.sub(" ", text)), hidden)


@cache
def _towers() -> re.Pattern[str]:
    """Return a pattern of too many combining marks, with those that stay in a group."""
    marks = "".join(chr(code) for code in range(0x300, _LAST_MARK) if unicodedata.combining(chr(code)))
    return re.compile(f"([{marks}]{{{_MOST_MARKS}}})[{marks}]+")


def one_line(text: str) -> str:
    """Return the words of a title or a label, cleaned, on one line."""
    return " ".join(clean(text).text.split())


def join_ideographs(text: str) -> str:
    """Return text without the line breaks among Chinese or Japanese characters, which have no spaces between words."""
    return text if text.isascii() else _BREAK_AMONG_IDEOGRAPHS.sub("", text)


def chosen_title(text: str) -> str:
    """Return a title or an author as a file gives it; empty for what a program wrote there when no person chose one."""
    title = one_line(text)
    return "" if _UNCHOSEN.fullmatch(title) else title


def printable(name: str, most: int = 200) -> str:
    """Return a file's name as it may stand in a message: no control characters, not endless, its suffix kept."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in name)
    return shown if len(shown) <= most else f"{shown[: most - 50]}…{shown[-49:]}"


class Draft:
    """Collects the blocks of one document in reading order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.page: int | None = None
        """The page that blocks are on which name none."""
        self.hidden = 0
        self.blobs = 0
        self.warnings: list[str] = []
        self._pieces: list[str] = []
        self._blocks: list[Block] = []
        self._length = 0

    def add(self, kind: BlockKind, text: str, *, level: int = 0, label: str = "", page: int | None = None) -> None:
        """Append one block; text without a visible character is left out."""
        cleaned = clean(text)
        self.hidden += cleaned.hidden
        readable, blobs = drop_blobs(cleaned.text)
        self.blobs += blobs
        visible = readable.rstrip().lstrip("\n") if kind == "code" else readable.strip()
        if not visible:
            return
        if kind == "heading":
            label = one_line(drop_blobs(label).text)
            kind, level = ("heading", level) if label else ("paragraph", 0)
        start = self._length + (len(GAP) if self._blocks else 0)
        self._length = start + len(visible)
        if self._length > MAX_CHARS:
            raise too_long(self.name)
        self._pieces.append(visible)
        self._blocks.append(Block(kind, start, self._length, level, label, self.page if page is None else page))
        if len(self._blocks) > MAX_BLOCKS:
            raise ParserLimit(
                f"{self.name} has more than {MAX_BLOCKS:,} paragraphs", hint="split the file into smaller ones"
            )

    def first_heading(self) -> str:
        """Return the words of the first top-level heading; empty when there is none."""
        return next((block.label for block in self._blocks if block.level == 1), "")

    def finish(
        self,
        media_type: str,
        *,
        title: str = "",
        metadata: Mapping[str, Json] | None = None,
        warnings: Sequence[str] = (),
        empty_hint: str = "remove it, or put text in it",
        unseen_hint: str = "",
        may_be_empty: bool = False,
    ) -> Parsed:
        """Return the finished document; `EmptyDocument` when nothing was added, unless it is one part of several.

        `unseen_hint` says what to do about a file that may hold words all the same: then it is `NoTextSeen`.
        """
        if not (self._blocks or may_be_empty):
            kind = NoTextSeen if unseen_hint else EmptyDocument
            raise kind(f"no text was found in {self.name}", hint=unseen_hint or empty_hint)
        notes = [*warnings, *self.warnings]
        if self.blobs:
            notes.append(f"{self.blobs} stretches of encoded data were left out")
        if self.hidden:
            notes.append(f"{self.hidden} hidden characters were removed")
        return Parsed(
            text=GAP.join(self._pieces),
            blocks=tuple(self._blocks),
            title=(one_line(title) or self.first_heading())[:MAX_TITLE],
            media_type=media_type,
            metadata=dict(metadata or {}),
            warnings=tuple(notes),
        )


def too_long(name: str) -> ParserLimit:
    """Return the error for a file that gives more text than any document has."""
    return ParserLimit(f"{name} gives more than {MAX_CHARS:,} characters of text", hint="split the file")


def broken_rules(parsed: Parsed) -> list[str]:
    """Return what is wrong with a parsed document's blocks; empty for every document a parser may return."""
    problems = []
    end = 0
    for block in parsed.blocks:
        where = f"{block.kind} at {block.start}"
        if not end <= block.start < block.end <= len(parsed.text):
            problems.append(f"{where}: not in order, empty or outside the text")
            continue
        if parsed.text[end : block.start].strip():
            problems.append(f"{where}: text before it belongs to no block")
        if not parsed.text[block.start : block.end].strip():
            problems.append(f"{where}: nothing but white space")
        if block.kind == "heading" and not (block.label.strip() and 1 <= block.level <= 6):
            problems.append(f"{where}: a heading needs a label and a level")
        if block.kind != "heading" and (block.level or block.label):
            problems.append(f"{where}: only a heading has a label and a level")
        end = block.end
    if parsed.text[end:].strip():
        problems.append("text after the last block belongs to no block")
    return problems
