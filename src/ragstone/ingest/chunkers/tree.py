"""The structure of a document as a tree: headings over the blocks that stand under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragstone.core.types import Block, BlockKind, Chunk, Parsed
from ragstone.ingest.chunkers.ruler import Ruler


@dataclass(slots=True)
class Group:
    """Blocks that share a chunk, or the one block that is cut into several."""

    start: int
    end: int
    kind: BlockKind
    level: int
    parent: int | None
    """Number of the group with the heading it stands under."""
    section: int
    """Number of the block that is its heading; -1 above the first one."""
    only_headings: bool


def grow(document: Parsed, ruler: Ruler, size: int, min_size: int) -> list[Group]:
    """One group per heading and per block; small neighbours of one section share one while they fit `size`."""
    groups: list[Group] = []
    open_headings: list[tuple[int, int]] = []  # Markdown level and group of each heading above
    section = -1
    for number, block in enumerate(document.blocks):
        heading = block.kind == "heading"
        if heading:
            while open_headings and open_headings[-1][0] >= block.level:
                open_headings.pop()
        parent = open_headings[-1][1] if open_headings else None
        if (
            groups
            and _related(groups, block, parent, section)
            and _fits(groups[-1], block, ruler, size, min_size)
        ):
            groups[-1].end = block.end
            groups[-1].only_headings &= heading
        else:
            level = len(open_headings) + 1
            groups.append(Group(block.start, block.end, block.kind, level, parent, section, heading))
        if heading:
            section = number
            groups[-1].section = section
            open_headings.append((block.level, len(groups) - 1))
    return groups


def placed(chunks: Sequence[Chunk], owners: Sequence[int], groups: Sequence[Group]) -> list[Chunk]:
    """The chunks with their level and parent; `owners` are the groups they were cut from."""
    first_chunks: dict[int, int] = {}
    for chunk, owner in zip(chunks, owners, strict=True):
        first_chunks.setdefault(owner, chunk.index)
    found = []
    for chunk, owner in zip(chunks, owners, strict=True):
        parent = groups[owner].parent
        above = None if parent is None else first_chunks[parent]
        found.append(replace(chunk, level=groups[owner].level, parent=above))
    return found


def _related(groups: Sequence[Group], block: Block, parent: int | None, section: int) -> bool:
    if block.kind == "heading":
        # A bare heading goes with the one below it, not with a sibling.
        return groups[-1].only_headings and parent == len(groups) - 1
    return groups[-1].section == section


def _fits(last: Group, block: Block, ruler: Ruler, size: int, min_size: int) -> bool:
    small = min(ruler.size(last.start, last.end), ruler.size(block.start, block.end)) < min_size
    return small and ruler.size(last.start, block.end) <= size
