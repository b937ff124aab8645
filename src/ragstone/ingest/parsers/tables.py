"""Rows of cells → Markdown tables: the one form a table has, whatever file it came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from ragstone.ingest.parsers.draft import Draft, one_line

GROUP_CHARS = 1000
"""Rows of a sheet go together up to this many characters, so that a chunk holds them with their header."""
_FEWEST_SPACES = 4
"""Between the words of a cell that says something; a name of a column has seldom as many."""
_FIGURE = re.compile(r"\d")


def markdown_table(rows: Iterable[Sequence[str]], *, has_header: bool | None = None) -> str:
    """Return a whole table; empty when no cell holds a word.

    Where the file does not say whether the first row names the columns, its words tell. A table without such a row gets
    an empty one: Markdown knows no other.
    """
    filled = [cells for cells in (_cells(row) for row in rows) if any(cells)]
    if not filled:
        return ""
    width = max(len(cells) for cells in filled)
    if has_header is False or (has_header is None and _is_like_the_rest(filled)):
        filled.insert(0, [])
    header, *body = (_line(cells, width) for cells in filled)
    return "\n".join((header, _rule(width), *body))


def _is_like_the_rest(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row says something where most of the others do: names of columns are short."""
    first, *rest = rows
    columns = [[row[column] for row in rest if column < len(row)] for column in range(len(first))]
    return any(
        cell.count(" ") >= _FEWEST_SPACES
        and sum(other.count(" ") >= _FEWEST_SPACES - 1 for other in below) * 2 >= len(rest)
        for cell, below in zip(first, columns, strict=True)
    )


def one_header(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a header of several rows as one, each column under all its names: "Price Retail", "Price Export"."""
    names = [list(dict.fromkeys(filter(None, column))) for column in zip_longest(*rows, fillvalue="")]
    return [[" ".join(column) for column in names]] if names else []


def add_row_groups(draft: Draft, rows: Iterable[Sequence[str]], *, page: int | None = None) -> None:
    """Write many rows as tables of a few rows each, every one with the header of them all."""
    filled = (cells for cells in (_cells(row) for row in rows) if any(cells))
    titles = next(filled, None)
    if titles is None:
        return
    header = f"{_line(titles, len(titles))}\n{_rule(len(titles))}"
    # A header longer than its rows must not make a file many times larger.
    room = max(GROUP_CHARS, 3 * len(header))
    group: list[str] = []
    size = len(header)
    for cells in filled:
        line = _line(cells, len(titles))
        if group and size + len(line) > room:
            draft.add("table", "\n".join((header, *group)), page=page)
            group, size = [], len(header)
        group.append(line)
        size += len(line) + 1
    draft.add("table", "\n".join((header, *group)), page=page)


def continue_table(upper: str, lower: str) -> str:
    """Return a table that goes on with another one's rows, under its header; unchanged where it has one of its own."""
    header, rule, *_ = upper.split("\n")
    first, lower_rule, *rest = lower.split("\n")
    if rule == lower_rule and rest and not first.strip("| "):
        return "\n".join((header, rule, *rest))
    if rule != lower_rule or first == header or _names_figures(first, rest):
        return lower
    return "\n".join((header, rule, first, *rest))


def _names_figures(first: str, rest: Sequence[str]) -> bool:
    """Return whether a row has words over a column of figures, as headers do."""
    columns = zip(_split(first), *map(_split, rest), strict=True)
    return any(
        above and not _FIGURE.search(above) and all(_FIGURE.search(cell) for cell in below) for above, *below in columns
    )


def _split(line: str) -> list[str]:
    return line[2:-2].split(" | ")


def _cells(row: Sequence[str]) -> list[str]:
    cells = [_cell(text) for text in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _cell(text: str) -> str:
    # Most cells are a plain word or number: sheets have millions of them.
    if text.isprintable() and "|" not in text and "  " not in text:
        return text.strip()
    return one_line(text).replace("|", r"\|")


def _line(cells: Sequence[str], width: int) -> str:
    return f"| {' | '.join((*cells, *[''] * (width - len(cells))))} |"


def _rule(width: int) -> str:
    return "|" + " --- |" * width
