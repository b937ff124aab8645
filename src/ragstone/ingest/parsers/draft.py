"""A document while it is being built: pieces in, `Parsed` out, offsets right by construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragstone.core.errors import EmptyDocument, NoTextSeen, ParserLimit
from ragstone.core.types import Block, BlockKind, Json, Parsed
from ragstone.ingest.parsers.text.cleaning import clean, one_line

MAX_BLOCKS = 250_000
MAX_CHARS = 64 * 1024 * 1024
"""More than the pool takes from any file: what goes beyond is stopped before it fills the memory."""
GAP = "\n\n"
MAX_TITLE = 500


class Draft:
    """Collects the blocks of one document in reading order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hidden = 0
        self.warnings: list[str] = []
        self._pieces: list[str] = []
        self._blocks: list[Block] = []
        self._length = 0

    def add(self, kind: BlockKind, text: str, *, level: int = 0, label: str = "", page: int | None = None) -> None:
        """Append one block; text without a visible character is left out."""
        cleaned = clean(text)
        self.hidden += cleaned.hidden
        visible = cleaned.text.rstrip().lstrip("\n") if kind == "code" else cleaned.text.strip()
        if not visible:
            return
        if kind == "heading":
            label = one_line(label)
            kind, level = ("heading", level) if label else ("paragraph", 0)
        start = self._length + (len(GAP) if self._blocks else 0)
        self._length = start + len(visible)
        if self._length > MAX_CHARS:
            raise too_long(self.name)
        self._pieces.append(visible)
        self._blocks.append(Block(kind, start, self._length, level, label, page))
        if len(self._blocks) > MAX_BLOCKS:
            raise ParserLimit(
                f"{self.name} has more than {MAX_BLOCKS:,} paragraphs", hint="split the file into smaller ones"
            )

    def first_heading(self) -> str:
        """Return the words of the first top-level heading; empty when there is none."""
        return next((block.label for block in self._blocks if block.level == 1), "")

    def finish(
        self,
        media_type: str,
        *,
        title: str = "",
        metadata: Mapping[str, Json] | None = None,
        warnings: Sequence[str] = (),
        empty_hint: str = "remove it, or put text in it",
        unseen_hint: str = "",
        may_be_empty: bool = False,
    ) -> Parsed:
        """Return the finished document; `EmptyDocument` when nothing was added, unless it is one part of several.

        `unseen_hint` says what to do about a file that may hold words all the same: then it is `NoTextSeen`.
        """
        if not (self._blocks or may_be_empty):
            kind = NoTextSeen if unseen_hint else EmptyDocument
            raise kind(f"no text was found in {self.name}", hint=unseen_hint or empty_hint)
        notes = [*warnings, *self.warnings]
        if self.hidden:
            notes.append(f"{self.hidden} hidden characters were removed")
        return Parsed(
            text=GAP.join(self._pieces),
            blocks=tuple(self._blocks),
            title=(one_line(title) or self.first_heading())[:MAX_TITLE],
            media_type=media_type,
            metadata=dict(metadata or {}),
            warnings=tuple(notes),
        )


def too_long(name: str) -> ParserLimit:
    """Return the error for a file that gives more text than any document has."""
    return ParserLimit(f"{name} gives more than {MAX_CHARS:,} characters of text", hint="split the file")


def broken_rules(parsed: Parsed) -> list[str]:
    """Return what is wrong with a parsed document's blocks; empty for every document a parser may return."""
    problems = []
    end = 0
    for block in parsed.blocks:
        where = f"{block.kind} at {block.start}"
        if not end <= block.start < block.end <= len(parsed.text):
            problems.append(f"{where}: not in order, empty or outside the text")
            continue
        if parsed.text[end : block.start].strip():
            problems.append(f"{where}: text before it belongs to no block")
        if not parsed.text[block.start : block.end].strip():
            problems.append(f"{where}: nothing but white space")
        if block.kind == "heading" and not (block.label.strip() and 1 <= block.level <= 6):
            problems.append(f"{where}: a heading needs a label and a level")
        if block.kind != "heading" and (block.level or block.label):
            problems.append(f"{where}: only a heading has a label and a level")
        end = block.end
    if parsed.text[end:].strip():
        problems.append("text after the last block belongs to no block")
    return problems
