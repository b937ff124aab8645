"""Jupyter notebooks: the text and the code of their cells, and what the code printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ragstone.core.errors import ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean
from ragstone.ingest.parsers.text.markdown import add_markdown
from ragstone.ingest.parsers.text.text import decode

LONGEST_OUTPUT = 4000
"""More than this of what one cell printed is a log, not something to read."""


def parse_notebook(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a notebook; pictures and other outputs without words are left out."""
    decoded = decode(content, name)
    try:
        notebook = json.loads(decoded.text)
    except ValueError as problem:
        raise ParseError(
            f"{name} is not a notebook: {problem}", hint="open it in Jupyter and save it again"
        ) from problem
    draft = Draft(name)
    for cell in _cells(notebook):
        source = _joined(cell.get("source", cell.get("input")))
        if cell.get("cell_type") == "code":
            draft.add("code", source)
            for output in _dicts(cell.get("outputs")):
                draft.add("code", _printed(output)[:LONGEST_OUTPUT])
        elif cell.get("cell_type") == "heading":
            draft.add("heading", source, level=min(max(int(cell.get("level") or 1), 1), 6), label=source)
        else:
            add_markdown(draft, clean(source).text)
    return draft.finish("application/x-ipynb+json", warnings=decoded.warnings)


def _cells(notebook: Any) -> Iterator[dict[str, Any]]:
    """Yield the cells of a notebook, also of the older kind that has them on worksheets."""
    if isinstance(notebook, dict):
        yield from _dicts(notebook.get("cells"))
        for sheet in _dicts(notebook.get("worksheets")):
            yield from _dicts(sheet.get("cells"))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _joined(value: Any) -> str:
    """Return text that is stored as one string or as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _printed(output: dict[str, Any]) -> str:
    """Return the words of an output: what was printed, the value as text, or the error."""
    if output.get("output_type") in ("error", "pyerr"):
        return f"{output.get('ename') or ''}: {output.get('evalue') or ''}".strip(": ")
    data = output.get("data")
    value = data.get("text/plain") if isinstance(data, dict) else output.get("text")
    shown = _joined(value)
    # What stands for a picture or a table is its type and place in memory.
    return "" if shown.startswith("<") and shown.endswith(">") else shown
