"""Quotes of passages: sentences, and rows of tables.

A row is quoted as it stands, and read together with the names of its columns. By itself it says little ("North, 4.2
million"), so only rows whose columns have names are read at all. Which row of a table is meant shows in its cells,
since the names of the columns stand over all of them alike. Rows that differ by a number in their name are different
things: Room 5 is not Room 12.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import zip_longest

from ragstone.core.answers import SITE, Citation, Support
from ragstone.core.documents import page_at
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.measurements import find_quantities
from ragstone.language.vocabulary import is_measured

_NUMBERED_WORD = re.compile(r"([^\W\d_]{1,40})\.?[ \t]{1,3}(?:no\.?|#)?[ \t]?(\d{1,9})(?![.,]?\w)", re.I)
_MORE = re.compile(r"\s{0,3}(?:,|and|or|to|&|[-–/])\s{0,3}\d", re.I)
_STANDS_ALONE = re.compile(r"(?<!\S)\d{1,9}(?!\S)\s?")


@dataclass(frozen=True, slots=True)
class Quote:
    """A part of a passage: `hit.text[start:end]`."""

    hit: Hit
    start: int
    end: int
    head: Quote | None = None
    """The header of its table, if it is a row of one."""

    @property
    def text(self) -> str:
        return self.hit.text[self.start : self.end]

    @property
    def names(self) -> Quote | None:
        """Return the header of its table, if it names the columns: a table may have an empty one."""
        return self.head if self.head and any(map(str.isalnum, self.head.text)) else None

    @property
    def place(self) -> tuple[str, int, int]:
        """Return its place in its document, the same for overlapping passages."""
        return (self.hit.document_id, self.hit.start + self.start, self.hit.start + self.end)

    @property
    def page(self) -> int | None:
        """Return the page that it begins on, which need not be the first of its passage."""
        return page_at(self.hit.start + self.start, self.hit.page, self.hit.page_starts)

    @property
    def headings(self) -> str:
        """Return the title and the headings above it."""
        return f"{self.hit.title}\n{self.hit.section}"

    def citation(self, n: int) -> Citation:
        """Return the citation of the quote under a number."""
        hit = self.hit
        document_id, start, end = self.place
        return Citation(
            n=n,
            quote=self.text,
            chunk_id=hit.chunk_id,
            document_id=document_id,
            title=hit.title,
            uri=hit.uri,
            page=self.page,
            section=hit.section,
            start=start,
            end=end,
            site=str(hit.metadata.get(SITE) or ""),
        )


def all_words(hit: Hit) -> str:
    """Return a passage with the headings over it."""
    return "\n".join((hit.title, hit.section, hit.table_head.text if hit.table_head else "", hit.text))


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence before its citations have numbers."""

    text: str
    support: Support
    quotes: tuple[Quote, ...]


def _is_another(label: str, spoken_of: Mapping[str, AbstractSet[int | None]]) -> bool:
    """Return whether a label has one of the names that were spoken of, and another number."""
    return any(
        name in spoken_of and None not in spoken_of[name] and spoken_of[name].isdisjoint(numbers)
        for name, numbers in _numbers(label).items()
    )


def drop_number(label: str, words: str) -> tuple[str, str]:
    """Return a label and words that have all of it, both without its number: it counts nothing."""
    name = _STANDS_ALONE.sub("", label).strip()
    whole = re.compile(rf"(?<!\w){re.escape(label)}(?!\w)", re.I)
    if not name or name == label or not whole.search(words):
        return label, words
    return name, whole.sub(lambda _: name, words)


def _numbers(words: str) -> dict[str, set[int | None]]:
    """Return the numbers that stand behind each name; None where there are more of them ("rooms 5 to 8")."""
    found: dict[str, set[int | None]] = defaultdict(set)
    for pair in _NUMBERED_WORD.finditer(words):
        for name in analyze(pair[1])[:1]:
            found[name].add(None if _MORE.match(words, pair.end()) else int(pair[2]))
    return found


Cell = tuple[str, str]
"""The name of a column, and what a row has there."""
MOST_CHARS = 8000
"""Of a row: as much as a receipt takes."""
_LONGEST_CAPTION = 200
_LONGEST_SHOWN = 300
"""Characters of a cell in an answer; its quote has all of them."""
_LONGEST_NAME = 60
"""Characters of a cell that names something; longer ones say something."""
_ROW = re.compile(r"^[ \t]{0,3}(\|.*)$", re.M)
_RULE = frozenset(" \t|:-")
_BAR = re.compile(r"(?<!\\)\|")
_FIGURE = re.compile(r"[^\w]{0,3}\d")
_NUMBERED_NAME = re.compile(r"[^\W\d_].*\d|(?:19|20)\d\d$")


def rows(hit: Hit) -> dict[int, Quote | None]:
    """Return the rows of a passage by where they begin, each with its header; None for header and rule lines.

    Rows whose columns have no names are left out.
    """
    if hit.table_head is None:
        return _rows(hit, None)[0]
    start, page, text = hit.table_head
    above = replace(hit, text=text, start=start, end=start + len(text), page=page, page_starts=(), table_head=None)
    return _rows(hit, _rows(above, None)[1])[0]


def _rows(hit: Hit, head: Quote | None) -> tuple[dict[int, Quote | None], Quote | None]:
    """Return the rows of a passage that begins below `head`, and the head above its end."""
    found: dict[int, Quote | None] = {}
    # A row that the passage has only the end of is no row, but the next one is.
    following = 0 if hit.text.lstrip(" ").startswith("|") else hit.text.find("\n") + 1
    above: Quote | None = None
    for line in _ROW.finditer(hit.text):
        if line.start() != following:
            head = above = None
        following = line.end() + 1
        quote = Quote(hit, line.start(1), line.start(1) + len(line[1].rstrip()), head)
        if "-" in quote.text and _RULE.issuperset(quote.text):
            if head is None and above is not None:
                head = above
                found[head.start] = None
            found[quote.start] = None
        elif head is not None and _is_whole(quote, head):
            found[quote.start] = quote
        above = quote
    return found, head


def _is_whole(row: Quote, head: Quote) -> bool:
    """Return whether a row has enough cells and is not cut off at the end of the passage."""
    filled = sum(bool(value) for value in _cells(row.text))
    cut_off = row.end == len(row.hit.text) and head.text.endswith("|") and not row.text.endswith("|")
    return filled > 1 and not cut_off and len(row.text) <= MOST_CHARS


def _cells(row: str) -> list[str]:
    inner = row.removeprefix("|")
    if inner.endswith("|") and not inner.endswith(r"\|"):
        inner = inner[:-1]
    return [cell.replace(r"\|", "|").strip() for cell in _BAR.split(inner)]


def label(row: Quote) -> str:
    """Return the first cell of a row, by which it is known."""
    return _cells(row.text)[0]


def named_cells(row: str, head: str) -> list[Cell]:
    """Return the cells that hold something, each behind the name of its column."""
    pairs = zip_longest(_cells(head), _cells(row), fillvalue="")
    return [(name, value) for name, value in pairs if value]


def render_row(row: str, head: str) -> str:
    """Return a row as an answer says it, `Region: North; Revenue: 4.2 million`; a long cell is shortened."""
    return _join_cells((name, _shorten(value)) for name, value in named_cells(row, head))


def _shorten(value: str) -> str:
    return value if len(value) <= _LONGEST_SHOWN else value[: _LONGEST_SHOWN - 1].rstrip() + "…"


def _join_cells(cells: Iterable[Cell]) -> str:
    return "; ".join(f"{name}: {value}" if name else value for name, value in cells)


def select_words(quote: Quote, terms: AbstractSet[str]) -> str:
    """Return the words by which a quote is judged: of a row, its label and the columns that the terms name."""
    if quote.head is None:
        return quote.text
    above = caption(quote.head)
    return _join_cells([*([("", above)] if above else []), *meant_cells(quote, terms)])


def caption(head: Quote) -> str:
    """Return the line right above a table, if it is short."""
    above = head.hit.text[: head.start].rstrip(" \t").removesuffix("\n").removesuffix("\n")
    line = above[above.rfind("\n") + 1 :].strip("# *:\t")
    return line if len(line) <= _LONGEST_CAPTION and not line.startswith("|") else ""


def meant_cells(row: Quote, terms: AbstractSet[str]) -> list[Cell]:
    """Return the cells that the terms are about: the first, those with some of the terms, and named columns.

    Where they name no column, all of them.
    """
    cells = named_cells(row.text, row.head.text if row.head else "")
    named = set(named_columns(row, terms))
    if not named:
        return cells
    return [cell for place, cell in enumerate(cells) if place == 0 or cell in named or terms & set(analyze(cell[1]))]


def named_columns(row: Quote, terms: AbstractSet[str]) -> list[Cell]:
    """Return the cells whose column the terms name best: "Revenue Q3" rather than "Revenue Q2"."""
    cells = named_cells(row.text, row.head.text if row.head else "")
    found = [frozenset(terms & set(analyze(name))) for name, _ in cells]
    best = {names for names in set(found) if names and not _is_outdone(names, set(found))}
    return [cell for cell, names in zip(cells, found, strict=True) if names in best]


def is_figure(cell: str) -> bool:
    """Return whether a cell holds a number or a date rather than a name."""
    return _FIGURE.match(cell) is not None


def is_prose(cell: str) -> bool:
    """Return whether a cell says something by itself."""
    return len(cell) > _LONGEST_NAME


def select_for_question(quotes: Sequence[Quote], question: str, terms: AbstractSet[str]) -> list[Quote]:
    """Return the quotes without the rows that a question does not single out, or less than another of their table."""
    return _drop_rows(quotes, question, lambda table: _rows_in_question(table, terms))


def select_for_claim(quotes: Sequence[Quote], claim: str, terms: AbstractSet[str]) -> list[Quote]:
    """Return the quotes without the rows that are not about all that a claim names of what their table is about.

    Figures do not tell: a claim may have them wrong.
    """
    figures = [figure for figure in find_quantities(claim) if is_measured(figure)]
    others = terms - {term for figure in figures for term in analyze(figure.words)}
    return _drop_rows(quotes, claim, lambda table: _rows_in_claim(table, others))


def _drop_rows(quotes: Sequence[Quote], words: str, chosen: Callable[[list[Quote]], list[Quote]]) -> list[Quote]:
    tables: dict[tuple[str, str], list[Quote]] = defaultdict(list)
    spoken_of = _numbers(words)
    for quote in quotes:
        if quote.head is not None and not _is_another(label(quote), spoken_of):
            tables[quote.hit.document_id, quote.head.text].append(quote)
    kept = {row.place for table in tables.values() for row in chosen(table)}
    return [quote for quote in quotes if quote.head is None or quote.place in kept]


def _rows_in_question(table: Sequence[Quote], terms: AbstractSet[str]) -> list[Quote]:
    wanted = _terms_beside_columns(table, terms)
    labels = [frozenset(wanted & label) for label in _find_labels(table)]
    any_label = any(labels)
    if any_label:
        wanted -= _terms_above(table)
    told = [
        label | wanted.intersection(analyze(row.text)) if label or not any_label else frozenset[str]()
        for row, label in zip(table, labels, strict=True)
    ]
    best = {found for found in set(told) if found and not _is_outdone(found, set(told))}
    meant = [row for row, found in zip(table, told, strict=True) if found in best]
    return meant if _numbered_terms(terms) <= set[str]().union(*map(_surrounding_terms, meant)) else []


def _rows_in_claim(table: Sequence[Quote], terms: AbstractSet[str]) -> list[Quote]:
    wanted = _terms_beside_columns(table, terms)
    labels = [wanted & label for label in _find_labels(table)]
    all_of_them = set[str]().union(*labels)
    numbered = _numbered_terms(terms)
    named = [bool(first := set(analyze(_cells(row.text)[0]))) and first <= terms for row in table]
    return [
        row
        for row, label, is_named in zip(table, labels, named, strict=True)
        if (label and (is_named if any(named) else label == all_of_them) and numbered <= _surrounding_terms(row))
        or any(is_prose(cell) for cell in _cells(row.text)[1:])
    ]


def _numbered_terms(terms: AbstractSet[str]) -> set[str]:
    """Return the terms that must match as a whole, since other rows have similar ones: "Q4", "AX-900", "2024"."""
    return {term for term in terms if _NUMBERED_NAME.match(term)}


def _surrounding_terms(row: Quote) -> set[str]:
    """Return the terms of a row and of all that stands over it."""
    head = f"{caption(row.head)}\n{row.head.text}" if row.head else ""
    return set(analyze(f"{row.text}\n{head}\n{row.hit.title}\n{row.hit.section}"))


def _terms_beside_columns(table: Sequence[Quote], terms: AbstractSet[str]) -> set[str]:
    """Return the terms that may tell one row from another."""
    return set(terms).difference(analyze(table[0].head.text) if table[0].head else ())


def _find_labels(table: Sequence[Quote]) -> list[set[str]]:
    """Return the terms that identify each row: its first cell and other names; for a single row, its headings too."""
    above, labels = _terms_above(table), []
    for row in table:
        first, *others = _cells(row.text)
        names = set(analyze("\n".join(cell for cell in others if not is_figure(cell) and not is_prose(cell))))
        labels.append(set(analyze(first)) | (names | above if len(table) == 1 else names - above))
    return labels


def _terms_above(table: Sequence[Quote]) -> set[str]:
    """Return the terms of the title and section of a table; they hold for all of its rows."""
    hit = table[0].hit
    return set(analyze(f"{hit.title}\n{hit.section}"))


def _is_outdone(found: AbstractSet[str], others: Iterable[AbstractSet[str]]) -> bool:
    return any(found < other for other in others)
