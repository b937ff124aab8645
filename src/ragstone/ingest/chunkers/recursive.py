"""The structure of a document as a tree of chunks: headings over what stands under them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ragstone.core.types import Block, Chunk, Parsed
from ragstone.ingest.chunkers.assembly import assemble
from ragstone.ingest.chunkers.cutting import Span, by_separator, cut
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.packing import pack
from ragstone.ingest.chunkers.ruler import Ruler


@dataclass(slots=True)
class _Group:
    """Blocks that share a chunk, or the chunks they are cut into."""

    start: int
    end: int
    level: int
    parent: int | None
    section: int
    only_headings: bool


@dataclass(frozen=True, slots=True)
class RecursiveChunker:
    """One chunk per heading and per block, each under its heading; larger ones are cut by `separators`.

    With a `min_size` a chunk that is smaller, or would be followed by a smaller one, is joined with the next
    block of the same section while both fit together; a heading is joined with its text in the same way.
    Without one every heading and block stays a chunk of its own. The level of a heading is its depth in the
    tree, that of a block one more; the parent is the chunk with the heading they stand under.
    """

    limits: Limits
    min_size: int = 0
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ")
    context: bool = True

    @property
    def fingerprint(self) -> str:
        options = f"min={self.min_size} separators={self.separators!r} context={self.context}"
        return f"recursive {self.limits.fingerprint} {options}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        text = document.text
        ruler = self.limits.ruler(text)
        # Between words is where every cut ends anyway.
        levels = [by_separator(separator) for separator in self.separators if separator.strip(" ")]
        spans: list[Span] = []
        owners: list[_Group] = []
        first_chunks: list[int] = []
        for group in self._groups(document, ruler):
            parts = cut(text, ruler, (group.start, group.end), self.limits, levels)
            first_chunks.append(len(spans))
            packed = pack(text, ruler, parts, self.limits)
            spans.extend(packed)
            owners.extend([group] * len(packed))
        chunks = assemble(document, ruler, spans, context=self.context)
        return [
            replace(
                chunk, level=group.level, parent=None if group.parent is None else first_chunks[group.parent]
            )
            for chunk, group in zip(chunks, owners, strict=True)
        ]

    def _groups(self, document: Parsed, ruler: Ruler) -> list[_Group]:
        groups: list[_Group] = []
        open_headings: list[tuple[int, int]] = []  # Markdown level and group of each heading above
        section = -1
        for number, block in enumerate(document.blocks):
            heading = block.kind == "heading"
            if heading:
                while open_headings and open_headings[-1][0] >= block.level:
                    open_headings.pop()
            parent = open_headings[-1][1] if open_headings else None
            if groups and self._joins(groups, block, parent, section, ruler):
                groups[-1].end = block.end
                groups[-1].only_headings &= heading
            else:
                level = len(open_headings) + 1
                groups.append(_Group(block.start, block.end, level, parent, section, heading))
            if heading:
                section = number
                groups[-1].section = section
                open_headings.append((block.level, len(groups) - 1))
        return groups

    def _joins(
        self, groups: list[_Group], block: Block, parent: int | None, section: int, ruler: Ruler
    ) -> bool:
        """Whether a block shares the chunk before it."""
        last = groups[-1]
        if block.kind == "heading":
            # A bare heading goes with the one below it, not with a sibling.
            related = last.only_headings and parent == len(groups) - 1
        else:
            related = last.section == section
        small = min(ruler.size(last.start, last.end), ruler.size(block.start, block.end)) < self.min_size
        return related and small and ruler.size(last.start, block.end) <= self.limits.size
