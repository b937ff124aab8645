"""The one form that a term with its description has, whatever file it came from: one block, the term on top."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ragstone.core.types import Block
from ragstone.ingest.parsers.draft import Draft, one_line

INDENT = "  "
LONGEST_TERM = 300
_SENTENCE_ENDS = (".", ":", ";", ",", "?", "!")
_MARKED = re.compile(r"(?:[-*+•‣◦–]|[0-9]{1,3}[.)]|\(?[a-zA-Z0-9]\))[ \t]")


def add_definition(draft: Draft, terms: Iterable[str], pieces: Iterable[str]) -> None:
    """Add a term and its description as one block; a term without a description is a paragraph."""
    text = format_definition(terms, pieces)
    draft.add("list" if "\n" in text else "paragraph", text)


def format_definition(terms: Iterable[str], pieces: Iterable[str]) -> str:
    """Return the terms on one line and the paragraphs of the description indented below."""
    term = ", ".join(filter(None, map(one_line, terms)))
    body = "\n\n".join(indent(piece) for piece in pieces if piece.strip())
    return f"{term}\n{body}" if term and body else term or body


def indent(piece: str) -> str:
    """Return a piece of text with every line of it that is not blank moved to the right."""
    return "\n".join(INDENT + line if line.strip() else "" for line in piece.strip("\n").split("\n"))


def find_term(text: str, block: Block) -> str:
    """Return the first line of a block that defines a term; empty for a block that does not."""
    end = text.find("\n", block.start, min(block.end, block.start + LONGEST_TERM))
    if block.kind != "list" or end < 0 or not text.startswith(INDENT, end + 1) or _MARKED.match(text, block.start):
        return ""
    term = text[block.start : end]
    return "" if term.endswith(_SENTENCE_ENDS) else term
