"""Tables of man pages, as the preprocessor tbl takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragstone.ingest.parsers.markup.roff import RoffLine, split_arguments, unescape
from ragstone.ingest.parsers.tables import markdown_table

_TAB = re.compile(r"\btab\s*\((.)\)")
_RULED = re.compile(r"[_=\s]*")


def read_table(lines: Iterator[RoffLine]) -> str:
    """Return the table that follows, up to its end, as Markdown."""
    mark = "\t"
    in_format = True
    rows: list[list[str]] = []
    block: list[str] | None = None
    for line in lines:
        if line.request == "TE":
            break
        text = _words(line)
        if in_format:
            if line.text.rstrip().endswith(";") and (found := _TAB.search(line.text)):
                mark = found[1]
            in_format = not line.text.rstrip().endswith(".")
        elif line.request == "T&":
            in_format = True
        elif block is not None:
            if line.text.startswith("T}"):
                cell = " ".join(filter(None, block))
                block = _add_cells(rows, [cell, *line.text[2:].split(mark)[1:]], continues=True)
            else:
                block.append(text)
        elif line.request in ("", "B", "I", "BR", "RB") and not _RULED.fullmatch(text):
            block = _add_cells(rows, line.text.split(mark) if not line.request else [text], continues=False)
    return markdown_table([[unescape(cell).strip() for cell in row] for row in rows])


def _add_cells(rows: list[list[str]], cells: list[str], *, continues: bool) -> list[str] | None:
    """Add the cells of a line; return a list for the lines of a cell that goes on below, or None."""
    goes_on = cells[-1].strip() == "T{"
    kept = cells[:-1] if goes_on else cells
    if continues:
        rows[-1] += kept
    else:
        rows.append(list(kept))
    return [] if goes_on else None


def _words(line: RoffLine) -> str:
    if not line.request:
        return unescape(line.text)
    joint = "" if len(line.request) == 2 and line.request.isupper() else " "
    return (
        joint.join(unescape(argument) for argument in split_arguments(line.text)) if not line.request.islower() else ""
    )
