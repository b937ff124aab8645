"""Chunkers for kinds of files: code between its definitions, mail between its messages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ragstone.core.types import Block, Chunk, Parsed
from ragstone.ingest.chunkers.cutting import (
    BY_LINE,
    ChunkLimits,
    Ruler,
    Span,
    cut,
    levels_of,
    split_blank_lines,
    split_lines,
)
from ragstone.ingest.chunkers.packing import TextUnit, assemble, fill, iter_units, line_spans, pack
from ragstone.ingest.parsers.mail.marks import begins_message
from ragstone.language.sentences import sentence_spans

Path = tuple[str, ...]
NAMED_IN_CONTEXT = 8
_SUBJECT = "Subject: "
_LONGEST_GREETING = 60
_GREETING_END = ",!:，：！"


class Symbols:
    """The paths of definitions, such as class and method, laid over the text of a file."""

    def __init__(self, document: Parsed) -> None:
        # Front matter and callers may use the same key for something else.
        raw = document.metadata.get("symbols")
        marks: list[tuple[int, Path]] = []
        for entry in raw if isinstance(raw, list) else ():
            match entry:
                case [int(start), *path] if all(isinstance(name, str) for name in path):
                    marks.append((start, tuple(path)))
        marks.sort()
        self._starts = [start for start, _ in marks]
        self._paths = [path for _, path in marks]

    def at(self, place: int) -> Path:
        """Return the path of the definition that holds this place; empty outside of all."""
        found = bisect_right(self._starts, place) - 1
        return self._paths[found] if found >= 0 else ()


def common_path(paths: Sequence[Path]) -> Path:
    """Return the names that all paths begin with, empty paths left out."""
    named = [path for path in paths if path]
    if not named:
        return ()
    first, last = min(named), max(named)
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return first[:shared]


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function, a method, or the lines between them."""

    unit: TextUnit
    path: Path
    home: Path
    """The path of the definition that it is a member of."""


@dataclass(frozen=True, slots=True)
class CodeChunker:
    """One chunk per function or method; imports, constants and small definitions share one with a neighbour.

    Only members of the same class, or of none, share. A definition larger than the size is cut at blank lines,
    then between lines. The section is the path of names, and the file's name and that path are the context.
    Text that is no code is packed in whole blocks.
    """

    limits: ChunkLimits
    min_size: int = 0
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"code {self.limits.fingerprint} min={self.min_size} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        spans: list[Span] = []
        owners: list[list[_Definition]] = []
        for group in self._groups(document, ruler):
            packed = self._cut(document.text, ruler, group)
            spans += packed
            owners += [group] * len(packed)
        chunks = assemble(document, ruler, spans, context=self.context)
        if any(block.kind != "code" for block in document.blocks):
            return chunks
        return [self._name_chunk(chunk, owner, document.title) for chunk, owner in zip(chunks, owners, strict=True)]

    def _groups(self, document: Parsed, ruler: Ruler) -> list[list[_Definition]]:
        groups: list[list[_Definition]] = []
        for definition in _definitions(document):
            if groups and self._shares(ruler, groups[-1], definition):
                groups[-1].append(definition)
            else:
                groups.append([definition])
        return groups

    def _shares(self, ruler: Ruler, group: Sequence[_Definition], following: _Definition) -> bool:
        """Return whether a definition goes into the chunk of those before it."""
        if group[0].home != following.home or following.unit.opens_section:
            return False
        start, end = group[0].unit.start, group[-1].unit.end
        smaller = min(ruler.size(start, end), ruler.size(following.unit.start, following.unit.end))
        together = ruler.size(start, following.unit.end)
        return smaller < self.limits.least(self.min_size) and together <= self.limits.size

    def _cut(self, text: str, ruler: Ruler, group: Sequence[_Definition]) -> list[Span]:
        kind = group[0].unit.kind
        levels = (split_blank_lines, split_lines) if kind == "code" else levels_of(kind)
        parts = cut(text, ruler, (group[0].unit.start, group[-1].unit.end), self.limits, levels)
        return pack(text, ruler, parts, self.limits, steps=line_spans if kind in BY_LINE else sentence_spans)

    def _name_chunk(self, chunk: Chunk, group: Sequence[_Definition], title: str) -> Chunk:
        paths = [definition.path for definition in group]
        return replace(chunk, section=common_path(paths), context=_context(title, paths) if self.context else "")


def _definitions(document: Parsed) -> Iterator[_Definition]:
    symbols = Symbols(document)
    parts = list(iter_units(document))
    paths = [symbols.at(unit.start) for unit in parts]
    classes = {path for pair in pairwise(paths) for path in pair if _is_class(path, pair)}
    for unit, path in zip(parts, paths, strict=True):
        yield _Definition(unit, path, path if path in classes else path[:-1])


def _is_class(path: Path, neighbours: Sequence[Path]) -> bool:
    """Return whether a neighbour is a member of it."""
    return bool(path) and any(len(other) > len(path) and other[: len(path)] == path for other in neighbours)


def _context(title: str, paths: Sequence[Path]) -> str:
    names = list(dict.fromkeys(".".join(path) for path in paths if path))
    more = ", …" if len(names) > NAMED_IN_CONTEXT else ""
    shown = [" ".join(title.split()), ", ".join(names[:NAMED_IN_CONTEXT]) + more]
    line = " · ".join(part for part in shown if part)
    return f"# {line}\n\n" if line else ""


@dataclass(frozen=True, slots=True)
class EmailChunker:
    """Packs the paragraphs of one message up to the size and never mixes two messages.

    A greeting or a quote stays with what follows it. Every chunk but the one that begins with it gets the
    line with the subject as context, those of a forwarded message also that message's own.
    """

    limits: ChunkLimits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"email {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        spans: list[Span] = []
        for message in _messages(document):
            spans += fill(document.text, ruler, _with_leads(document.text, iter_units(message)), self.limits)
        chunks = assemble(document, ruler, spans, context=False)
        if not self.context:
            return chunks
        return [replace(chunk, context=_mail_context(document.title, chunk)) for chunk in chunks]


def _messages(document: Parsed) -> Iterator[Parsed]:
    """Yield the document's messages; each begins at its mark or its copied headers."""
    message: list[Block] = []
    for block in document.blocks:
        if message and begins_message(document.text[block.start : block.end]):
            yield replace(document, blocks=tuple(message))
            message = []
        message.append(block)
    yield replace(document, blocks=tuple(message))


def _with_leads(text: str, message: Iterable[TextUnit]) -> Iterator[TextUnit]:
    """Yield the units with greetings and quotes joined to the next one, as headings are already."""
    lead: TextUnit | None = None
    for unit in message:
        joined = replace(unit, start=lead.start) if lead else unit
        lead = joined if _leads(text, unit) else None
        if lead is None:
            yield joined
    if lead is not None:
        yield lead


def _leads(text: str, unit: TextUnit) -> bool:
    is_short = unit.kind == "paragraph" and unit.end - unit.start <= _LONGEST_GREETING
    return unit.kind == "quote" or (is_short and text[unit.end - 1] in _GREETING_END)


def _mail_context(title: str, chunk: Chunk) -> str:
    subject = f"{_SUBJECT}{' '.join(title.split())}"
    if not title.strip() or chunk.text.startswith(subject):
        return ""
    place = f"{' > '.join(chunk.section)}\n" if chunk.section else ""
    return f"{subject}\n{place}\n"
