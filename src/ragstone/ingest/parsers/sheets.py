"""Find the tables of a sheet by their shape: notes above, one or two rows of names, rows that go on below a gap."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from ragstone.ingest.parsers.draft import Draft
from ragstone.ingest.parsers.tables import add_row_groups, one_header

Row = Sequence[str]
SAMPLE_ROWS = 50
"""So many rows show what a table is like."""
MAX_MERGED = 10_000
_FIGURE = re.compile(r"\d")
_YEAR = re.compile(r"(?:19|20)\d\d(?:[-/]\d\d(?:\d\d)?)?")


@dataclass(frozen=True, slots=True)
class _Table:
    """The names of the columns of a table, where the first of them stands, and which columns hold figures."""

    names: list[str]
    first: int
    figures: frozenset[int]

    def goes_on(self, row: Row) -> bool:
        """Return whether a row is one more of this table: a figure stands where it has figures, and nothing beyond."""
        filled = {column - self.first for column in _filled(row)}
        within = min(filled) >= 0 and max(filled) < len(self.names)
        return within and not _is_names(row) and bool(self.figures & filled)


def add_named_sheet(draft: Draft, name: str, rows: Iterable[Row]) -> None:
    """Write the tables of a sheet under its name; lines above them, as titles are, and single columns become text."""
    table: _Table | None = None
    for number, region in enumerate(_regions(rows)):
        if not number:
            draft.add("heading", name, level=1, label=name)
        start = 0 if table and table.goes_on(region[0]) else _count_notes(region)
        for note in region[:start]:
            draft.add("paragraph", " ".join(filter(None, note)))
        rest = region[start:]
        if not rest:
            continue
        if table is None or not table.goes_on(rest[0]):
            first = min(min(_filled(row)) for row in rest)
            names, rest = _split_names([row[first:] for row in rest])
            table = _Table(names, first, _figure_columns(rest))
        else:
            rest = [row[table.first :] for row in rest]
        add_row_groups(draft, [table.names, *rest])


def fill_down(rows: Iterable[Row], merged: Iterable[tuple[int, int, int]]) -> Iterator[list[str]]:
    """Yield rows in which all cells of an area that was merged downwards show its text; other empty rows stay empty.

    Areas are given by their first row, the row behind their last, and their column.
    """
    ends = {(top, column): bottom for top, bottom, column in islice(merged, MAX_MERGED) if bottom > top + 1}
    shown: dict[int, tuple[int, str]] = {}
    for number, row in enumerate(rows):
        cells = list(row)
        if ends and any(cells):
            for column, (bottom, text) in shown.items():
                if number < bottom and column < len(cells) and not cells[column]:
                    cells[column] = text
        for column, cell in enumerate(cells if ends else ()):
            if cell and (number, column) in ends:
                shown[column] = ends[number, column], cell
        yield cells


def add_rows(draft: Draft, rows: Iterable[Row]) -> None:
    """Write one long table, of which only the first rows are looked at; notes above its names become text."""
    filled = (row for row in rows if any(cell.strip() for cell in row))
    head: list[Row] = [[cell.strip() for cell in row] for row in islice(filled, SAMPLE_ROWS)]
    start = _count_notes(head)
    if start == len(head) or not _is_names(head[start]):
        start = 0
    for note in head[:start]:
        draft.add("paragraph", " ".join(filter(None, note)))
    names, body = _split_names(head[start:])
    add_row_groups(draft, chain([names], body, filled) if names else filled)


def _regions(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows that stand together, apart from others by an empty row."""
    region: list[Row] = []
    for row in rows:
        if any(row):
            region.append(row)
        elif region:
            yield region
            region = []
    if region:
        yield region


def _count_notes(rows: Sequence[Row]) -> int:
    """Return how many rows stand above a table: those of one cell, and those far narrower than its rows."""
    counts = [len(_filled(row)) for row in rows[:SAMPLE_ROWS]]
    single = next((place for place, count in enumerate(counts) if count > 1), len(rows))
    widths = Counter(count for count in counts if count > 1)
    width = max(widths, key=lambda count: (widths[count], count), default=0)
    wide = next((place for place, count in enumerate(counts) if count > 1 and count * 2 > width), single)
    start = wide if wide < len(rows) and _is_names(rows[wide]) else single
    if start and start < len(rows) and _is_group(rows[start - 1], rows[start], rows[start + 1 :]):
        return start - 1
    return start


def _split_names(rows: Sequence[Row]) -> tuple[list[str], list[Row]]:
    """Return the names of the columns, and the rows below them; names may take two rows."""
    if len(rows) > 1 and _is_group(rows[0], rows[1], rows[2:]):
        return one_header([_spread(rows[0], rows[1]), rows[1]])[0], list(rows[2:])
    return (list(rows[0]), list(rows[1:])) if rows else ([], [])


def _is_group(upper: Row, lower: Row, below: Sequence[Row]) -> bool:
    """Return whether a row names groups of the columns that the next row names, above rows with figures."""
    if not (below and _is_names(upper) and _is_names(lower) and _figure_columns(below)):
        return False
    spans = _spans(upper, lower)
    if len(spans) == 1 and spans[0] >= _filled(lower):
        return False  # a title over all of the table
    return any(len(span) > 1 for span in spans) and all(
        len(span) > 1 or _cell(lower, column) in ("", upper[column]) for span in spans for column in span
    )


def _spans(upper: Row, lower: Row) -> list[set[int]]:
    """Return the columns that each name of the upper row stands over: its own, and named ones behind it."""
    starts = sorted(_filled(upper))
    ends = [*starts[1:], max(len(upper), len(lower))]
    named = _filled(lower)
    return [
        {start, *(column for column in range(start, end) if column in named)}
        for start, end in zip(starts, ends, strict=True)
    ]


def _spread(upper: Row, lower: Row) -> list[str]:
    names = [""] * max(len(upper), len(lower))
    for start, span in zip(sorted(_filled(upper)), _spans(upper, lower), strict=True):
        for column in span:
            names[column] = upper[start]
    return names


def _is_names(row: Row) -> bool:
    """Return whether a row holds words alone, as names of columns do; a year may be one."""
    cells = [cell for cell in row if cell]
    return bool(cells) and not any(_FIGURE.search(cell) and not _YEAR.fullmatch(cell) for cell in cells)


def _figure_columns(rows: Sequence[Row]) -> frozenset[int]:
    """Return the columns that hold figures in most of the rows that fill them."""
    counts: Counter[int] = Counter()
    for row in rows[:SAMPLE_ROWS]:
        for column in _filled(row):
            counts[column] += 1 if _FIGURE.search(row[column]) else -1
    return frozenset(column for column, count in counts.items() if count > 0)


def _filled(row: Row) -> set[int]:
    return {column for column, cell in enumerate(row) if cell}


def _cell(row: Row, column: int) -> str:
    return row[column] if column < len(row) else ""
