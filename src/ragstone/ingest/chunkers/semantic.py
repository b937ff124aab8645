"""Cut by meaning: where the topic changes, or by structure first and by meaning where a part is still too large."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragstone.core.batches import batched
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.protocols import Chunker
from ragstone.core.types import BlockKind, Chunk, Matrix, Parsed
from ragstone.ingest.chunkers.cutting import (
    BY_LINE,
    ChunkLimits,
    Ruler,
    Span,
    cut,
    separator_levels,
    split_lines,
    split_sentences,
)
from ragstone.ingest.chunkers.packing import (
    TextUnit,
    assemble,
    fill,
    group_by_section,
    iter_units,
    pack_evenly,
    repeat_from,
)
from ragstone.ingest.chunkers.plain import BlockGroup, group_blocks, place_chunks

logger = logging.getLogger(__name__)
Embed = Callable[[Sequence[str]], Matrix]
"""One unit-length row per text; a row of zeros for a text that the model refused. It may block."""
BATCH = 256
MAX_SEGMENTS = 20_000
"""About two thousand pages: no model is kept busy by one document for longer."""
FEWEST = 3
MOST = 5
"""Sentences of a segment."""
REPEATED_SENTENCES = 2


@dataclass(frozen=True, slots=True)
class TopicSegment:
    """Three to five sentences, or one block of code or one table; fewer only where a section has no more."""

    parts: tuple[Span, ...]
    kind: BlockKind

    @property
    def start(self) -> int:
        return self.parts[0][0]

    @property
    def end(self) -> int:
        return self.parts[-1][1]


def cut_segments(text: str, section: Iterable[TextUnit]) -> list[TopicSegment]:
    """Return the segments of one section. A paragraph with enough sentences shares no segment with others."""
    found: list[TopicSegment] = []
    paragraphs: list[list[Span]] = []
    for unit in section:
        if unit.kind in BY_LINE:
            found += _cut_prose(paragraphs)
            found.append(TopicSegment(((unit.start, unit.end),), unit.kind))
            paragraphs = []
        else:
            paragraphs.append(_split_sentences(text, unit))
    found += _cut_prose(paragraphs)
    return found


def _split_sentences(text: str, unit: TextUnit) -> list[Span]:
    """Return a unit's sentences; its headings are part of the first one."""
    parts = list(split_sentences(text, unit.start, unit.end))
    headings = sum(end <= unit.headings_end for _, end in parts)
    if 0 < headings < len(parts):
        return [(unit.start, parts[headings][1]), *parts[headings + 1 :]]
    return parts


def _cut_prose(paragraphs: Sequence[list[Span]]) -> Iterator[TopicSegment]:
    for sentences in _join_paragraphs(paragraphs):
        count = -(-len(sentences) // MOST)
        cuts = [len(sentences) * number // count for number in range(count + 1)]
        for first, last in pairwise(cuts):
            yield TopicSegment(tuple(sentences[first:last]), "paragraph")


def _join_paragraphs(paragraphs: Sequence[list[Span]]) -> list[list[Span]]:
    """Join paragraphs with too few sentences to the next one, the last one to the one before."""
    joined: list[list[Span]] = []
    for sentences in paragraphs:
        if joined and len(joined[-1]) < FEWEST:
            joined[-1] = [*joined[-1], *sentences]
        else:
            joined.append(sentences)
    if len(joined) > 1 and len(joined[-1]) < FEWEST:
        rest = joined.pop()
        joined[-1] = [*joined[-1], *rest]
    return joined


@dataclass(frozen=True, slots=True)
class Topic:
    """Segments that belong together, and the cosine of the first one to the segment before it."""

    segments: tuple[TopicSegment, ...]
    similarity: float = math.nan
    """Not a number where nothing stands before it, or nothing could be compared."""

    @property
    def start(self) -> int:
        return self.segments[0].start

    @property
    def end(self) -> int:
        return self.segments[-1].end

    @property
    def units(self) -> Iterator[TextUnit]:
        """Yield its sentences, tables and blocks of code."""
        return (TextUnit(start, end, part.kind) for part in self.segments for start, end in part.parts)


def find_topics(
    text: str, sections: Sequence[Sequence[TopicSegment]], embed: Embed, threshold: float
) -> list[list[Topic]]:
    """Return the topics of each section: segments less alike than `threshold` are cut apart."""
    compared = [part for section in sections if len(section) > 1 for part in section]
    if len(compared) > MAX_SEGMENTS:
        raise ModelError(
            f"a text of {len(compared):,} segments is too large to be compared by meaning",
            hint="split the document, or choose another chunking strategy for it",
        )
    cosines = iter(_cosines([text[part.start : part.end] for part in compared], embed))
    return [
        _topics(section, [next(cosines) for _ in section] if len(section) > 1 else [math.nan], threshold)
        for section in sections
    ]


def join_small(topics: Sequence[Topic], ruler: Ruler, least: int, most: int) -> list[Topic]:
    """Join topics smaller than `least` to the neighbour they are more like, if both are no larger than `most`."""
    joined: list[Topic] = []
    rest = list(reversed(topics))
    while rest:
        topic = rest.pop()
        small = ruler.size(topic.start, topic.end) < least
        back = small and bool(joined) and ruler.size(joined[-1].start, topic.end) <= most
        ahead = small and bool(rest) and ruler.size(topic.start, rest[-1].end) <= most
        if ahead and not (back and topic.similarity >= rest[-1].similarity):
            rest[-1] = Topic(topic.segments + rest[-1].segments, topic.similarity)
        elif back:
            joined[-1] = Topic(joined[-1].segments + topic.segments, joined[-1].similarity)
        else:
            joined.append(topic)
    return joined


def add_shift(chunk: Chunk, similarity: float) -> Chunk:
    """Return the chunk with the change of topic at its start, from 0 to 2, where that is known."""
    if math.isnan(similarity):
        return chunk
    return replace(chunk, metadata={**chunk.metadata, "topic_shift_score": round(1 - similarity, 4)})


def _topics(section: Sequence[TopicSegment], cosines: Sequence[float], threshold: float) -> list[Topic]:
    topics: list[tuple[list[TopicSegment], float]] = []
    for number, (segment, cosine) in enumerate(zip(section, cosines, strict=True)):
        if number and not cosine < threshold:
            topics[-1][0].append(segment)
        else:
            topics.append(([segment], cosine if number else math.nan))
    return [Topic(tuple(parts), cosine) for parts, cosine in topics]


def _cosines(texts: Sequence[str], embed: Embed) -> Iterator[float]:
    """Yield the cosine of each text to the one before it; not a number if there is none."""
    before: NDArray[np.float64] | None = None
    for batch in batched(texts, BATCH):
        rows = np.asarray(embed(batch), np.float64)
        if rows.ndim != 2 or len(rows) != len(batch):
            raise ModelError(f"a model gave an array of shape {rows.shape} for {len(batch)} texts")
        previous = np.concatenate([np.zeros_like(rows[:1]) if before is None else before, rows[:-1]])
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.linalg.norm(previous, axis=1) * np.linalg.norm(rows, axis=1)
            cosines = (previous * rows).sum(axis=1) / lengths
        yield from cosines.tolist()
        before = rows[-1:]


def cut_by_meaning(document: Parsed, cut: Callable[[Parsed], list[Chunk]], otherwise: Chunker) -> list[Chunk]:
    """Return chunks cut by meaning, or by structure alone while the model cannot be reached."""
    try:
        return cut(document)
    except (ModelError, RemoteError) as problem:
        logger.warning("cannot cut a document by meaning, cutting it by structure: %s", problem)
        return otherwise.chunk(document)


@dataclass(frozen=True, slots=True)
class SemanticChunker:
    """Joins neighbouring segments of a section that are alike and cuts where they are not.

    A topic smaller than `min_size` goes with a neighbour of its section. One larger than the size is cut at
    sentences, and only there does a chunk repeat the end of the one before. When the model fails, the document
    is cut by `fallback`.
    """

    limits: ChunkLimits
    embed: Embed
    fallback: Chunker
    min_size: int = 0
    breakpoint: float = 0.5
    context: bool = True

    @property
    def fingerprint(self) -> str:
        options = f"min={self.min_size} breakpoint={self.breakpoint} context={self.context}"
        return f"semantic {self.limits.fingerprint} {options} or {self.fallback.fingerprint}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        return cut_by_meaning(document, self._chunk, self.fallback)

    def _chunk(self, document: Parsed) -> list[Chunk]:
        text = document.text
        ruler = self.limits.ruler(text)
        least = self.limits.least(self.min_size)
        sections = [cut_segments(text, section) for section in group_by_section(iter_units(document))]
        spans: list[Span] = []
        shifts: list[float] = []
        for topics in find_topics(text, sections, self.embed, self.breakpoint):
            for topic in join_small(topics, ruler, least, self.limits.size):
                filled = fill(text, ruler, topic.units, self.limits, least)
                spans += filled
                shifts += [topic.similarity, *[math.nan] * (len(filled) - 1)]
        chunks = assemble(document, ruler, spans, context=self.context)
        return [add_shift(chunk, shift) for chunk, shift in zip(chunks, shifts, strict=True)]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk before it repeats anything."""

    start: int
    end: int
    group: int
    similarity: float = math.nan


@dataclass(frozen=True, slots=True)
class HybridChunker:
    """Three stages: the tree of headings and blocks; topics inside a block that is too large; overlap.

    A topic that is still too large is cut by `separators`. The overlap is the last one or two sentences before
    the chunk, within one section, as far as the limits allow. Level and parent are those of the tree. When the
    model fails, the document is cut by `fallback`.
    """

    limits: ChunkLimits
    embed: Embed
    fallback: Chunker
    min_size: int = 0
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ")
    breakpoint: float = 0.5
    context: bool = True

    @property
    def fingerprint(self) -> str:
        options = f"min={self.min_size} separators={self.separators!r} breakpoint={self.breakpoint}"
        return f"hybrid {self.limits.fingerprint} {options} context={self.context} or {self.fallback.fingerprint}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        return cut_by_meaning(document, self._chunk, self.fallback)

    def _chunk(self, document: Parsed) -> list[Chunk]:
        ruler = self.limits.ruler(document.text)
        groups = group_blocks(document, ruler, self.limits.size, self.limits.least(self.min_size))
        pieces = self._pieces(document.text, ruler, groups)
        spans = self._overlapping(document, ruler, pieces, groups)
        chunks = place_chunks(
            assemble(document, ruler, spans, context=self.context), [piece.group for piece in pieces], groups
        )
        return [add_shift(chunk, piece.similarity) for chunk, piece in zip(chunks, pieces, strict=True)]

    def _pieces(self, text: str, ruler: Ruler, groups: Sequence[BlockGroup]) -> list[_Piece]:
        large = [number for number, group in enumerate(groups) if self._is_large_prose(ruler, group)]
        prose = [cut_segments(text, [TextUnit(groups[at].start, groups[at].end, groups[at].kind)]) for at in large]
        topics = dict(zip(large, find_topics(text, prose, self.embed, self.breakpoint), strict=True))
        pieces: list[_Piece] = []
        for number, group in enumerate(groups):
            if number in topics:
                pieces += self._by_topic(text, ruler, number, topics[number])
                continue
            lines = cut(text, ruler, (group.start, group.end), replace(self.limits, overlap=0), (split_lines,))
            packed = pack_evenly(text, ruler, lines, replace(self.limits, overlap=0))
            pieces += [_Piece(start, end, number) for start, end in packed]
        return pieces

    def _is_large_prose(self, ruler: Ruler, group: BlockGroup) -> bool:
        return group.kind not in BY_LINE and ruler.size(group.start, group.end) > self.limits.size

    def _by_topic(self, text: str, ruler: Ruler, number: int, topics: Sequence[Topic]) -> list[_Piece]:
        # What will repeat something must leave room for it.
        room = min(self.limits.overlap, self.limits.size // 2)
        limits = replace(self.limits, size=self.limits.size - room, overlap=0)
        least = self.limits.least(self.min_size)
        levels = separator_levels(self.separators)
        pieces: list[_Piece] = []
        for topic in join_small(topics, ruler, least, limits.size):
            parts = cut(text, ruler, (topic.start, topic.end), limits, levels)
            spans = pack_evenly(text, ruler, parts, limits, least=least)
            similarities = [topic.similarity, *[math.nan] * (len(spans) - 1)]
            pieces += [
                _Piece(start, end, number, similarity)
                for (start, end), similarity in zip(spans, similarities, strict=True)
            ]
        return pieces

    def _overlapping(
        self, document: Parsed, ruler: Ruler, pieces: Sequence[_Piece], groups: Sequence[BlockGroup]
    ) -> list[Span]:
        tables = [(block.start, block.end) for block in document.blocks if block.kind == "table"]
        spans = [(piece.start, piece.end) for piece in pieces]
        for number in range(1, len(pieces)):
            before, after = groups[pieces[number - 1].group], groups[pieces[number].group]
            if self.limits.overlap and _go_on(before, after):
                start = repeat_from(
                    document.text,
                    ruler,
                    spans[number - 1][0],
                    (pieces[number].start, pieces[number].end),
                    self.limits,
                    whole=tables,
                    most=REPEATED_SENTENCES,
                )
                spans[number] = (start, pieces[number].end)
        return spans


def _go_on(before: BlockGroup, after: BlockGroup) -> bool:
    """Return whether the second group continues the prose of the first one's section."""
    prose = before.kind not in BY_LINE and after.kind not in BY_LINE
    return prose and not before.only_headings and before.section == after.section
