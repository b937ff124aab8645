"""Source code: the file as it is, in one block per definition, with the names of what they define."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from ragstone.core.types import Json, Parsed
from ragstone.ingest.parsers.code.outline import LANGUAGES, CodeLanguage, OutlineMark, TookTooLong, outline
from ragstone.ingest.parsers.draft import Draft, clean
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions
from ragstone.ingest.parsers.text.decoding import decode

MAX_CHARS = 2_000_000
"""Larger files are generated: their lines are enough."""
MAX_SYMBOLS_BYTES = 24 * 1024
"""Metadata is kept whole in memory and in the ledger; what is beyond this has no names."""
_CLOSING = ")]}"


def parse_code(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a source file; `metadata["symbols"]` lists where each definition begins: `[start, "Class", "method"]`."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    language = LANGUAGES.get(PurePosixPath(name).suffix.lower())
    marks, problem = _marks(cleaned.text, language)
    paths = list(_add_blocks(draft, cleaned.text.split("\n"), marks))
    parsed = draft.finish(
        language.media_type if language else "text/plain",
        metadata={"encoding": decoded.encoding, **({"programming_language": language.name} if language else {})},
        warnings=(*decoded.warnings, *([problem] if problem else [])),
    )
    symbols = _symbols([block.start for block in parsed.blocks], paths)
    return replace(parsed, metadata={**parsed.metadata, "symbols": symbols})


def _marks(text: str, language: CodeLanguage | None) -> tuple[list[OutlineMark], str]:
    """Return the definitions of a file, and why they could not be told apart."""
    whole = [OutlineMark(0, ())]
    if language is None:
        return whole, ""
    if len(text) > MAX_CHARS:
        return whole, f"the file has more than {MAX_CHARS:,} characters: it is cut between lines"
    try:
        return outline(text, language), ""
    except ImportError:
        return whole, "cut between lines; for whole functions and classes: pip install 'ragstone[code]'"
    except TookTooLong:
        return whole, f"its syntax could not be read as {language.name} in time: it is cut between lines"


def _add_blocks(draft: Draft, lines: Sequence[str], marks: Sequence[OutlineMark]) -> Iterator[tuple[str, ...]]:
    """Add the text of each definition, and give the path of each block that was added."""
    ends = [*(mark.row for mark in marks[1:]), len(lines)]
    for mark, end in zip(marks, ends, strict=True):
        rows = [(mark.row, end)] if mark.path else _paragraphs(lines, mark.row, end)
        for first, last in rows:
            block = "\n".join(lines[first:last])
            if block.strip():
                draft.add("code", block)
                yield mark.path


def _paragraphs(lines: Sequence[str], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield rows that belong together: another run begins at the margin, behind a blank line."""
    start = first
    for row in range(first + 1, last):
        line = lines[row]
        at_margin = line[:1].strip() and line[0] not in _CLOSING
        if at_margin and not lines[row - 1].strip():
            yield start, row
            start = row
    yield start, last


def _symbols(starts: Sequence[int], paths: Sequence[tuple[str, ...]]) -> list[Json]:
    """Return where the path changes, as far as there is room; definitions beyond it have no entry."""
    symbols: list[Json] = []
    room = MAX_SYMBOLS_BYTES
    before: tuple[str, ...] = ()
    for start, path in zip(starts, paths, strict=True):
        if path == before:
            continue
        entry = [start, *path]
        room -= len(json.dumps(entry)) + 2
        if room < 0:
            return [*symbols, [start]]
        symbols.append(entry)
        before = path
    return symbols
