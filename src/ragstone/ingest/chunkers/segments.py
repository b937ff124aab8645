"""Segments: a few sentences that are compared with the next few to find where the topic changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragstone.core.types import BlockKind
from ragstone.ingest.chunkers.cutting import BY_LINE, Span, by_sentence
from ragstone.ingest.chunkers.outline import Unit

FEWEST = 3
MOST = 5


@dataclass(frozen=True, slots=True)
class Segment:
    """Three to five sentences, or one block of code or one table; fewer only where a section has no more."""

    parts: tuple[Span, ...]
    kind: BlockKind

    @property
    def start(self) -> int:
        return self.parts[0][0]

    @property
    def end(self) -> int:
        return self.parts[-1][1]


def segments(text: str, section: Iterable[Unit]) -> list[Segment]:
    """The segments of one section. Those of a paragraph end with it where it has sentences enough."""
    found: list[Segment] = []
    paragraphs: list[list[Span]] = []
    for unit in section:
        if unit.kind in BY_LINE:
            found += _prose(paragraphs)
            found.append(Segment(((unit.start, unit.end),), unit.kind))
            paragraphs = []
        else:
            paragraphs.append(_sentences(text, unit))
    found += _prose(paragraphs)
    return found


def _sentences(text: str, unit: Unit) -> list[Span]:
    """A unit's sentences; its headings are part of the first one."""
    parts = list(by_sentence(text, unit.start, unit.end))
    headings = sum(end <= unit.headings_end for _, end in parts)
    if 0 < headings < len(parts):
        return [(unit.start, parts[headings][1]), *parts[headings + 1 :]]
    return parts


def _prose(paragraphs: Sequence[list[Span]]) -> Iterator[Segment]:
    for sentences in _joined(paragraphs):
        count = -(-len(sentences) // MOST)
        cuts = [len(sentences) * number // count for number in range(count + 1)]
        for first, last in pairwise(cuts):
            yield Segment(tuple(sentences[first:last]), "paragraph")


def _joined(paragraphs: Sequence[list[Span]]) -> list[list[Span]]:
    """Paragraphs with too few sentences go with the next one, the last of them with the one before."""
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
