"""CSV and TSV: rows in small tables that each repeat the header; the delimiter is what makes the rows alike."""

from __future__ import annotations

import csv
import io
from collections import Counter
from itertools import islice

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import Draft, clean
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions
from ragstone.ingest.parsers.tables import add_row_groups
from ragstone.ingest.parsers.text.decoding import decode

SAMPLE_ROWS = 50
LINES_PER_ROW = 1000
"""A row of more lines than this has a quotation mark that was never closed."""
_DELIMITERS = ",;\t|"
_LONGEST_FIELD = 64 * 1024 * 1024


def parse_csv(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a table of plain text."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    text, delimiter = _find_delimiter(cleaned.text, is_tsv=name.lower().endswith(".tsv"))
    csv.field_size_limit(_LONGEST_FIELD)
    quoted = _quotes_are_closed(text, delimiter)
    if not quoted:
        draft.warnings.append("a quotation mark was never closed; all of them were read as text")
    lines = io.StringIO(text, newline="")
    plain = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    add_row_groups(draft, csv.reader(lines, delimiter=delimiter) if quoted else plain)
    return draft.finish(
        "text/tab-separated-values" if delimiter == "\t" else "text/csv",
        metadata={"encoding": decoded.encoding},
        warnings=decoded.warnings,
    )


def _find_delimiter(text: str, *, is_tsv: bool) -> tuple[str, str]:
    """Return the rows without the line by which spreadsheets name their delimiter, and the delimiter."""
    first, _, rest = text.partition("\n")
    if len(first) == 5 and first.startswith("sep=") and first[4] in _DELIMITERS:
        return rest, first[4]
    if is_tsv and "\t" in text:
        return text, "\t"
    # The first of the best: a comma when nothing tells them apart.
    return text, max(_DELIMITERS, key=lambda delimiter: _likeness(text, delimiter))


def _likeness(text: str, delimiter: str) -> tuple[float, int]:
    """Return which share of the first rows have the same number of cells, and that number; one cell is no table."""
    rows = csv.reader(io.StringIO(text[:100_000], newline=""), delimiter=delimiter)
    try:
        widths = Counter(len(row) for row in islice(rows, SAMPLE_ROWS) if row)
    except csv.Error:
        return 0.0, 0
    width, rows_alike = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    return (rows_alike / widths.total(), width) if width > 1 else (0.0, 0)


def _quotes_are_closed(text: str, delimiter: str) -> bool:
    """Return whether every quoted cell ends: one that does not would swallow the rest of the file."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    before = 0
    for _ in reader:
        if reader.line_num - before > LINES_PER_ROW:
            return False
        before = reader.line_num
    return True
