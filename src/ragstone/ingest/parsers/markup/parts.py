"""Parts of a page that hold one another, on their way to blocks: terms with descriptions, items, paragraphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from ragstone.ingest.parsers.definitions import add_definition, format_definition, indent
from ragstone.ingest.parsers.draft import Draft, one_line

PartKind = Literal["heading", "paragraph", "code", "table", "quote", "term", "item"]


@dataclass(slots=True)
class MarkupPart:
    """A block of a page; only terms and items hold others."""

    kind: PartKind
    text: str = ""
    """For an item, the mark before it."""
    terms: list[str] = field(default_factory=list)
    inside: list[MarkupPart] = field(default_factory=list)
    level: int = 0


def add_parts(draft: Draft, parts: Iterable[MarkupPart]) -> None:
    """Add each part as a block; neighbouring items are one list."""
    for kind, run in groupby(parts, key=lambda part: part.kind):
        if kind == "item":
            draft.add("list", "\n".join(map(render, run)))
            continue
        for part in run:
            if part.kind == "term":
                add_definition(draft, part.terms, pieces(part.inside))
            elif part.kind == "heading":
                draft.add("heading", one_line(part.text), level=part.level, label=part.text)
            elif part.kind != "item":
                draft.add(part.kind, part.text)


def pieces(parts: Sequence[MarkupPart]) -> list[str]:
    """Return the texts of parts, items of one list together."""
    found: list[str] = []
    for kind, run in groupby(parts, key=lambda part: part.kind):
        texts = [render(part) for part in run]
        found += ["\n".join(texts)] if kind == "item" else texts
    return found


def render(part: MarkupPart) -> str:
    """Return the text of a part, what it holds indented."""
    if part.kind == "term":
        return format_definition(part.terms, pieces(part.inside))
    if part.kind == "item":
        return part.text + indent("\n".join(pieces(part.inside))).lstrip()
    return part.text
