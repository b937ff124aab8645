"""The structure of a document as a tree of chunks: headings over what stands under them."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.assembly import assemble
from ragstone.ingest.chunkers.cutting import Span, by_line, cut, separator_levels
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.packing import line_spans, pack
from ragstone.ingest.chunkers.tree import grow, placed


@dataclass(frozen=True, slots=True)
class RecursiveChunker:
    """One chunk per heading and per block, each under its heading; larger ones are cut by `separators`.

    With a `min_size` a chunk that is smaller, or would be followed by a smaller one, is joined with the next
    block of the same section while both fit together; a heading is joined with its text in the same way.
    Without one every heading and block stays a chunk of its own. The level of a heading is its depth in the
    tree, that of a block one more; the parent is the chunk with the heading they stand under. A table is cut
    between rows only.
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
        levels = separator_levels(self.separators)
        groups = grow(document, ruler, self.limits.size, self.min_size)
        spans: list[Span] = []
        owners: list[int] = []
        for number, group in enumerate(groups):
            whole = (group.start, group.end)
            if group.kind == "table":
                rows = cut(text, ruler, whole, self.limits, (by_line,))
                packed = pack(text, ruler, rows, self.limits, steps=line_spans)
            else:
                packed = pack(text, ruler, cut(text, ruler, whole, self.limits, levels), self.limits)
            spans += packed
            owners += [number] * len(packed)
        return placed(assemble(document, ruler, spans, context=self.context), owners, groups)
