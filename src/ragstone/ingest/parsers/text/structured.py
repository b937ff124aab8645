"""CSV and JSON: records with the names of their fields."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from ragstone.core.errors import ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, MAX_CHARS, Draft, ParseOptions, clean, one_line, too_long
from ragstone.ingest.parsers.sheets import add_rows
from ragstone.ingest.parsers.text.text import decode

SAMPLE_ROWS = 50
LINES_PER_ROW = 1000
"""A row of more lines than this has a quotation mark that was never closed."""
_DELIMITERS = ",;\t|"
_LONGEST_FIELD = 64 * 1024 * 1024
_TITLES = ("title", "name", "headline", "subject")
_TEXTS = ("text", "body", "content", "page_content", "markdown", "description", "summary", "abstract")
_LINES = (".jsonl", ".ndjson")
# Numbers stay as they were written: no digit is lost, and none of them can be too long to read.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


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
    add_rows(draft, csv.reader(lines, delimiter=delimiter) if quoted else plain)
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


def parse_json(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a JSON document, or one record per line."""
    decoded = decode(content, name)
    draft = Draft(name)
    title = ""
    if name.lower().endswith(_LINES):
        _add_lines(draft, decoded.text)
    else:
        title = _add_document(draft, _whole(decoded.text, name))
    return draft.finish(
        "application/x-ndjson" if name.lower().endswith(_LINES) else "application/json",
        title=title,
        metadata={"encoding": decoded.encoding},
        warnings=decoded.warnings,
    )


def _whole(text: str, name: str) -> Any:
    try:
        return _DECODER.decode(text.strip("\ufeff \t\r\n"))
    except ValueError as problem:
        raise ParseError(
            f"{name} is not valid JSON: {problem}",
            hint="correct it there; a file of one record per line must be called .jsonl",
        ) from problem


def _add_lines(draft: Draft, text: str) -> None:
    broken = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip("\ufeff \t\r"):
            continue
        try:
            value = _DECODER.decode(line.strip("\ufeff \t\r"))
        except (ValueError, RecursionError):
            broken.append(number)
        else:
            draft.add("paragraph", _record(value, draft.name))
    if broken:
        shown = ", ".join(map(str, broken[:10]))
        draft.warnings.append(f"{len(broken)} lines cannot be read as JSON and were left out: {shown}")


def _add_document(draft: Draft, value: Any) -> str:
    """Write a document's own fields, then each record of its lists; return what it is called."""
    if not isinstance(value, dict):
        for entry in value if _is_records(value) else [value]:
            draft.add("paragraph", _record(entry, draft.name))
        return ""
    lists = {key: entries for key, entries in value.items() if _is_records(entries)}
    own = {key: entry for key, entry in value.items() if key not in lists}
    title = _first(own, _TITLES)
    if title:
        draft.add("heading", title, level=1, label=title)
    text = _first(own, _TEXTS)
    draft.add("paragraph", _together(_fields(own, skip=(title, text)), draft.name))
    for paragraph in text.split("\n\n"):
        draft.add("paragraph", paragraph)
    for key, entries in lists.items():
        draft.add("heading", key, level=2, label=key)
        for entry in entries:
            draft.add("paragraph", _record(entry, draft.name))
    return one_line(title)


def _record(value: Any, name: str) -> str:
    """Return a record in one piece: what it is called, its text, then its other fields."""
    if not isinstance(value, dict):
        return _together(_fields(value), name)
    title, text = _first(value, _TITLES), _first(value, _TEXTS)
    return _together(chain((title, text), _fields(value, skip=(title, text))), name)


def _together(lines: Iterable[str], name: str) -> str:
    """Join lines, within a bound: paths repeat for each value under them, so a few long keys can give gigabytes."""
    kept: list[str] = []
    size = 0
    for line in filter(None, lines):
        kept.append(line)
        size += len(line)
        if size > MAX_CHARS:
            raise too_long(name)
    return "\n".join(kept)


def _first(fields: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Return the value of the first of these keys that holds words."""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _fields(value: Any, path: str = "", *, skip: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield `key: value` lines; nested keys are joined by dots, and places in lists count from 1."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if not (isinstance(entry, str) and entry.strip() and entry.strip() in skip):
                yield from _fields(entry, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        for place, entry in enumerate(value, start=1):
            yield from _fields(entry, f"{path}.{place}" if path else str(place))
    else:
        shown = ", ".join(map(_scalar, value)) if isinstance(value, list) else _scalar(value)
        if shown.strip():
            yield f"{path}: {shown}" if path else shown


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value).strip()


def _is_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)
