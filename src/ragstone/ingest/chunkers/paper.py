"""Chunks of a scientific paper, each inside one of its sections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragstone.core.types import Block, Chunk, Parsed
from ragstone.ingest.chunkers.boundaries import trim
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.markdown import MarkdownChunker
from ragstone.ingest.chunkers.paper_lines import Reader, SectionLine, cited, is_known, split_number

ENOUGH = 2
"""So many known names make a text a paper, in which other headings are believed too."""


@dataclass(frozen=True, slots=True)
class PaperChunker:
    """Packs what stands in one section, from Abstract to References, and never mixes two.

    Sections are the document's headings and, where a text has lost them, lines that name one.
    """

    limits: Limits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"paper {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        return MarkdownChunker(self.limits, 0, self.context).chunk(with_sections(document))


def with_sections(document: Parsed) -> Parsed:
    """The document with a heading block for every section that is found; its text stays what it was."""
    reader = Reader()
    found: list[list[SectionLine]] = []
    known = 0
    for block in document.blocks:
        lines: list[SectionLine] = []
        if block.kind == "heading":
            reader.pass_heading(block.label)
            known += is_known(split_number(block.label)[1])
        elif block.kind == "paragraph" or _is_one_line_list(document.text, block):
            lines = list(reader.lines(document.text, block))
            known += sum(line.known for line in lines)
        found.append(lines)
    base = _base_level(document.blocks)
    blocks: list[Block] = []
    for block, lines in zip(document.blocks, found, strict=True):
        sure = [line for line in lines if line.known or known >= ENOUGH]
        blocks += _split(document.text, block, sure, base)
    return replace(document, blocks=tuple(blocks))


def _split(text: str, block: Block, lines: Sequence[SectionLine], base: int) -> Iterator[Block]:
    if block.kind == "heading":
        name = split_number(block.label)[1]
        yield replace(block, label=cited(name)) if is_known(name) else block
        return
    if not lines:
        yield block
        return
    start = block.start
    for line in lines:
        yield from _rest(text, block, start, line.start)
        level = min(6, base + line.depth - 1)
        begin, end = trim(text, line.start, line.end)
        yield Block("heading", begin, end, level, line.name, block.page)
        start = line.end
    yield from _rest(text, block, start, block.end)


def _rest(text: str, block: Block, start: int, end: int) -> Iterator[Block]:
    start, end = trim(text, start, end)
    if start < end:
        yield replace(block, start=start, end=end)


def _is_one_line_list(text: str, block: Block) -> bool:
    """Markdown takes `1. Introduction` for a list of one item."""
    return block.kind == "list" and text.find("\n", block.start, block.end) < 0


def _base_level(blocks: Sequence[Block]) -> int:
    """The depth of a section among the headings that are there already."""
    headings = [block for block in blocks if block.kind == "heading"]
    sections = [block.level for block in headings if is_known(split_number(block.label)[1])]
    if sections:
        return min(sections)
    return 1 + min((block.level for block in headings), default=0)
