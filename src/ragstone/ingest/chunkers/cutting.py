"""Measure text in tokens or characters, and cut it between words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from ragstone.core.errors import InputError
from ragstone.core.protocols import Tokenizer
from ragstone.core.types import BlockKind
from ragstone.language.analyzer import UNSPACED
from ragstone.language.sentences import sentence_spans

SLICE = 65_536
"""Characters tokenised at a time, so that a huge text does not become a huge list of tokens."""
VERSION = 3
"""Raised whenever any strategy would cut the same text differently."""
TINY = {"tokens": 100, "chars": 400}
"""A chunk below this says too little to be found by its meaning."""
LOOK = 256
"""A run of letters longer than this is no word and may be cut anywhere."""
LONGEST_CLUSTER = 32
LONGEST_FLAGS = 1024
_UNSPACED = re.compile(f"[{UNSPACED}]")
_FIRST_UNSPACED = UNSPACED[0]
_ZERO_WIDTH_JOINER = "\u200d"
_REGIONAL_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_REGIONAL = re.compile(f"[{_REGIONAL_LETTERS}]")
_EXTENDS = re.compile("[\u200d\u1160-\u11ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
Span = tuple[int, int]
Level = Callable[[str, int, int], Iterator[Span]]
"""Cuts a span of a text into trimmed parts that leave nothing but white space out."""
BY_LINE: frozenset[BlockKind] = frozenset(("code", "table"))
"""Kinds of blocks whose lines mean something: they are cut between them."""


class Ruler:
    """Measures spans of a text in tokens or characters."""

    def __init__(self, text: str, tokenizer: Tokenizer, unit: Literal["tokens", "chars"]) -> None:
        self.unit = unit
        self._length = len(text)
        offsets = [
            np.fromiter(chain.from_iterable(tokenizer.offsets(text[start:end])), np.int64).reshape(-1, 2) + start
            for start, end in _slices(text)
        ]
        joined = np.concatenate(offsets) if offsets else np.empty((0, 2), np.int64)
        # Bytes of one character share its place; whatever a tokenizer says, places never run backwards.
        self._starts = np.maximum.accumulate(joined[:, 0])
        self._ends = np.maximum.accumulate(joined[:, 1])

    def tokens(self, start: int, end: int) -> int:
        """Return the number of tokens in the span, those at its edges included."""
        if end <= start:
            return 0
        before_end = int(self._starts.searchsorted(end, "left"))
        return max(0, before_end - int(self._ends.searchsorted(start, "right")))

    def size(self, start: int, end: int) -> int:
        """Return the size of a span in this ruler's unit."""
        return end - start if self.unit == "chars" else self.tokens(start, end)

    def reach(self, start: int, size: int) -> int:
        """Return the furthest end of a span from `start` that is no larger than `size`."""
        if self.unit == "chars":
            return min(self._length, start + size)
        beyond = int(self._ends.searchsorted(start, "right")) + size
        return int(self._starts[beyond]) if beyond < len(self._starts) else self._length

    def back(self, end: int, size: int) -> int:
        """Return the furthest start of a span up to `end` that is no larger than `size`."""
        if self.unit == "chars":
            return max(0, end - size)
        beyond = int(self._starts.searchsorted(end, "left")) - size - 1
        return int(self._ends[beyond]) if beyond >= 0 else 0


def _slices(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = min(len(text), start + SLICE)
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space if space > start else end
        yield start, end
        start = end


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The largest size of a chunk and the most it repeats of the one before, in tokens or characters."""

    tokenizer: Tokenizer
    size: int = 400
    overlap: int = 50
    unit: Literal["tokens", "chars"] = "tokens"

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.size:
            raise InputError(
                f"an overlap of {self.overlap} does not go with a chunk size of {self.size}",
                hint="choose a size above 0 and an overlap from 0 to less than the size",
            )

    def ruler(self, text: str) -> Ruler:
        """Return a ruler for this text in this unit."""
        return Ruler(text, self.tokenizer, self.unit)

    def least(self, min_size: int) -> int:
        """Return the size below which a chunk is joined to a neighbour: as asked for, or tiny for the chunk size."""
        return min_size or min(TINY[self.unit], self.size // 4)

    @property
    def fingerprint(self) -> str:
        """Return everything that decides where a text is cut, except the strategy."""
        return f"v{VERSION} {self.size}/{self.overlap} {self.unit} tokenizer={self.tokenizer.name}"


def skip_space(text: str, start: int, end: int) -> int:
    """Return the first place in the span that is not white space, or its end."""
    while start < end and text[start].isspace():
        start += 1
    return start


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the white space around it."""
    start = skip_space(text, start, end)
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def is_between_words(text: str, place: int) -> bool:
    """Return whether a cut here leaves every word whole."""
    if place <= 0 or place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if before.isspace() or after.isspace():
        return True
    if max(before, after) < _FIRST_UNSPACED:
        return False
    unspaced = _UNSPACED.match(before) or _UNSPACED.match(after)
    return bool(unspaced) and is_between_characters(text, place)


def is_between_characters(text: str, place: int) -> bool:
    """Return whether a cut here leaves every visible character whole."""
    before, after = text[place - 1], text[place]
    if before == _ZERO_WIDTH_JOINER or _EXTENDS.match(after) or unicodedata.category(after)[0] == "M":
        return False
    if _REGIONAL.match(before) and _REGIONAL.match(after):
        run = text[max(0, place - LONGEST_FLAGS) : place]
        letters = len(run) - len(run.rstrip(_REGIONAL_LETTERS))
        return letters % 2 == 0
    return True


def last_cut(text: str, limit: int, floor: int) -> int:
    """Return the best cut at or before `limit` and behind `floor`: between words, else between characters."""
    for place in range(limit, max(floor, limit - LOOK), -1):
        if is_between_words(text, place):
            return place
    for place in range(limit, max(floor, limit - LONGEST_CLUSTER), -1):
        if is_between_characters(text, place):
            return place
    return max(limit, floor + 1)


def word_end(text: str, start: int, end: int) -> int:
    """Return the end of the word at `start`; one character on if it has no end within reach."""
    for place in range(start + 1, min(end, start + LOOK)):
        if is_between_words(text, place):
            return place
    return end if end <= start + LOOK else start + 1


def next_word(text: str, place: int, ceiling: int) -> int:
    """Return the first start of a word at or behind `place`; `ceiling` if there is none before it."""
    for start in range(place, ceiling):
        if not text[start].isspace() and is_between_words(text, start):
            return start
    # A cut inside an endless word is followed by another one.
    inside = place < ceiling and not is_between_words(text, ceiling) and is_between_characters(text, place)
    return place if inside else ceiling


def split_sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield sentences, each with the list or heading mark before it."""
    ends = (start + stop for _, stop in sentence_spans(text[start:end]))
    return _split_at(text, start, end, ends)


def split_lines(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield lines with their indentation."""
    return _with_indent(text, start, level_of_separator("\n")(text, start, end))


def split_blank_lines(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield runs of lines between blank lines, with their indentation."""
    return _with_indent(text, start, level_of_separator("\n\n")(text, start, end))


def level_of_separator(separator: str) -> Level:
    """Return the level of one separator of the settings; `". "` means sentences, which know abbreviations."""
    if separator.strip() == ".":
        return split_sentences
    pattern = re.compile(re.escape(separator))

    def level(text: str, start: int, end: int) -> Iterator[Span]:
        return _split_at(text, start, end, (match.end() for match in pattern.finditer(text, start, end)))

    return level


def separator_levels(separators: Iterable[str]) -> list[Level]:
    """Return the levels of the settings' separators; every cut falls back to words anyway."""
    return [level_of_separator(separator) for separator in separators if separator.strip(" ")]


def levels_of(kind: BlockKind) -> Sequence[Level]:
    """Return the levels that cut a block of this kind: rows and lines of code stay whole."""
    return (split_lines,) if kind in BY_LINE else (split_sentences,)


def cut(text: str, ruler: Ruler, span: Span, limits: ChunkLimits, levels: Sequence[Level]) -> list[Span]:
    """Return parts that fit, cut at the first level that makes them fit, else between words."""
    if ruler.size(*span) <= limits.size:
        return [span]
    if not levels:
        # Smaller than a chunk by the overlap, so that what is repeated still fits.
        return list(cut_windows(text, ruler, span, limits.size - limits.overlap, 0))
    parts: list[Span] = []
    for part in levels[0](text, *span):
        parts.extend(cut(text, ruler, part, limits, levels[1:]))
    return parts


def cut_windows(text: str, ruler: Ruler, span: Span, size: int, overlap: int) -> Iterator[Span]:
    """Yield spans of whole words as large as fits, each beginning with the last words of the one before."""
    start, end = trim(text, *span)
    fresh = start
    while fresh < end:
        limit = min(end, ruler.reach(start, size))
        stop = end if limit >= end else last_cut(text, limit, fresh)
        yield trim(text, start, stop)
        earliest = start + 1
        start = fresh = skip_space(text, stop, end)
        if overlap and fresh < end:
            # What is repeated leaves room for at least one more word.
            room = ruler.back(word_end(text, fresh, end), size)
            start = next_word(text, min(fresh, max(earliest, room, ruler.back(fresh, overlap))), fresh)


def _with_indent(text: str, start: int, parts: Iterable[Span]) -> Iterator[Span]:
    for first, last in parts:
        line = text.rfind("\n", start, first) + 1
        yield max(line, start), last


def _split_at(text: str, start: int, end: int, ends: Iterable[int]) -> Iterator[Span]:
    for stop in (*ends, end):
        first, last = trim(text, start, stop)
        if first < last:
            yield first, last
        start = stop
