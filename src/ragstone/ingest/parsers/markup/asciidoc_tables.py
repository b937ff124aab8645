"""Tables of AsciiDoc: cells between bars or commas, with a header where the page says so."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from ragstone.ingest.parsers.markup.asciidoc_words import AsciidocWords
from ragstone.ingest.parsers.tables import markdown_table

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
