"""The structure of plain text as its lines show it: headings, entries of a term with its description, paragraphs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import dedent

from ragstone.ingest.parsers.definitions import add_definition
from ragstone.ingest.parsers.draft import Draft

_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_UNDERLINED = re.compile(r"([^\W_][^\n]{1,150})\n(([=~^*#-])\3{2,})[ \t]*(?:\n|$)")
_NUMBERED = re.compile(r"(?:[A-Z]|[1-9][0-9]?|0)\.(?:(?:[0-9]{1,2}\.?){1,4}[ \t]+(?=[^\W\d_])|[ \t]+(?=[^\W\d_a-z]))")
_PARTS = re.compile(r"[A-Z]|[0-9]{1,2}")
_MARKED = re.compile(r"(?:[-*+•‣◦–]|[0-9]{1,3}[.)]|\(?[a-zA-Z0-9]\))[ \t]")
_FIELD = re.compile(r"[\w-]{1,40}:[ \t]")
_OPTION = re.compile(r"['\"`‘]|--?\w|/\w")
_INITIAL = re.compile(r",[ \t]+[A-Z]\.")
"""The initial of an author behind the surname, as references to books have it."""
_LETTERS = re.compile(r"[^\W\d_]{2}")
_ENDS = (".", ",", ":", ";", "!", "…", "|", "{", "}", ")", "=")
_SENTENCE_ENDS = (".", "!", "?", ":")
_MOST_HEADING_WORDS, _LONGEST_HEADING = 10, 80
_MOST_TERMS, _MOST_TERM_WORDS, _LONGEST_TERM = 4, 10, 60
_LONGEST_ENTRY = 2000
_LEAST_INDENT = 2


def add_plain_text(draft: Draft, text: str) -> None:
    """Add the headings, entries and paragraphs of a text."""
    _Outline(draft, split_paragraphs(text)).add_all()


def split_paragraphs(text: str) -> list[str]:
    """Return the parts of a text between blank lines."""
    return _BLANK_LINES.split(text.lstrip("\n"))


class _Outline:
    """Goes through the paragraphs of a text and knows which marks and indents its headings have."""

    def __init__(self, draft: Draft, paragraphs: Sequence[str]) -> None:
        self._draft = draft
        self._paragraphs = paragraphs
        self._marks: list[str] = []
        self._indents: list[int] = []

    def add_all(self) -> None:
        number = 0
        while number < len(self._paragraphs):
            number = self._add(number)

    def _add(self, number: int) -> int:
        """Add what begins with a paragraph, and return the number of the next one."""
        paragraph = self._paragraphs[number]
        title = _UNDERLINED.match(paragraph)
        level = self._underlined_level(title) if title else 0
        if title and level:
            self._draft.add("heading", title[1], level=level, label=title[1])
            self._draft.add("paragraph", paragraph[title.end() :])
            return number + 1
        if level := self._standing_level(number):
            self._draft.add("heading", paragraph, level=level, label=paragraph.strip())
            return number + 1
        if terms := _find_terms(paragraph):
            return self._add_entry(number, terms)
        self._draft.add("paragraph", paragraph)
        return number + 1

    def _underlined_level(self, title: re.Match[str]) -> int:
        """Return the level of an underlined line, 0 for a line over a rule; the marks count in order of appearance."""
        if abs(len(title[1].rstrip()) - len(title[2])) > 2:
            return 0
        if title[3] not in self._marks:
            self._marks.append(title[3])
        return min(self._marks.index(title[3]) + 1, 6)

    def _standing_level(self, number: int) -> int:
        """Return the level of a numbered line, or of one that stands left of the text below it; 0 for any other.

        Neither is the title of the whole text, so none is of the first level.
        """
        line = self._paragraphs[number]
        below = self._paragraphs[number + 1].rstrip() if number + 1 < len(self._paragraphs) else ""
        if "\n" in line or not _is_title(line.strip()) or not _LETTERS.search(below):
            return 0
        if parts := _count_parts(line):
            is_listed = all(_count_parts(words) and _is_title(words.strip()) for words in below.split("\n"))
            deeper = _count_parts(below) > parts and "\n" not in below
            return 0 if is_listed and not deeper else min(len(self._marks) + parts + 1, 6)
        if _FIELD.match(line.strip()):
            return 0
        indent = _indent(line)
        if _indent(below) < indent + 1 or not _reads_as_prose(below) or _MARKED.match(below.strip()):
            return 0
        if indent not in self._indents:
            self._indents = sorted([*self._indents, indent])
        return min(len(self._marks) + self._indents.index(indent) + 2, 6)

    def _add_entry(self, number: int, terms: int) -> int:
        """Add a term with its description, which goes on in all paragraphs that are indented as far."""
        lines = self._paragraphs[number].split("\n")
        body = "\n".join(lines[terms:])
        far = min(_indent(line) for line in lines[terms:])
        pieces, length, following = [dedent(body)], len(body), number + 1
        while following < len(self._paragraphs):
            piece = self._paragraphs[following].rstrip()
            length += len(piece)
            if length > _LONGEST_ENTRY or not piece or any(_indent(line) < far for line in piece.split("\n")):
                break
            pieces.append("\n".join(line.expandtabs()[far:] for line in piece.split("\n")))
            following += 1
        add_definition(self._draft, [line.strip() for line in lines[:terms]], pieces)
        return following


def _indent(line: str) -> int:
    spread = line.expandtabs()
    return len(spread) - len(spread.lstrip())


def _count_parts(line: str) -> int:
    """Return how many numbers stand before a title: "4.2." has two."""
    numbered = _NUMBERED.match(line.strip())
    return len(_PARTS.findall(numbered[0])) if numbered else 0


def _is_title(words: str) -> bool:
    most = _MOST_HEADING_WORDS + 6 * (_count_parts(words) > 1)
    is_short = len(words) <= _LONGEST_HEADING and len(words.split()) <= most
    begins = words[:1].isupper() or words[:1].isdigit()
    if not is_short or not begins or words.endswith(_ENDS) or _INITIAL.search(words):
        return False
    return _LETTERS.search(words) is not None


def _reads_as_prose(paragraph: str) -> bool:
    return paragraph.rstrip().endswith(_SENTENCE_ENDS) and len(paragraph.split()) >= _MOST_TERMS


def _find_terms(paragraph: str) -> int:
    """Return how many lines of a paragraph are terms that the indented lines below them describe; 0 where none is."""
    lines = paragraph.split("\n")
    first = _indent(lines[0])
    terms = next((number for number, line in enumerate(lines) if _indent(line) != first), 0)
    if not 0 < terms <= _MOST_TERMS or any(_indent(line) < first + _LEAST_INDENT for line in lines[terms:]):
        return 0
    named = [line.strip() for line in lines[:terms]]
    if terms > 1 and not all(map(_OPTION.match, named)):
        return 0
    return terms if all(_is_term(words, lines[terms].strip()) for words in named) else 0


def _is_term(words: str, below: str) -> bool:
    """Return whether a line names what is described below it; a sentence with hanging lines does not."""
    count = len(words.split())
    hangs = words[:1].isupper() and below[:1].islower() and count > _MOST_TERMS
    if len(words) > _LONGEST_TERM or count > _MOST_TERM_WORDS or hangs or _MARKED.match(words):
        return False
    return not words.endswith((".", ",", ":", ";", "!", "?")) and not (words.isupper() and words.isalpha())
