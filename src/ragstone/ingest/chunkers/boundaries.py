"""Where a text may be cut: between words, and never inside what a reader sees as one character."""

from __future__ import annotations

import re
import unicodedata

from ragstone.language.analyzer import UNSPACED

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


def skip_space(text: str, start: int, end: int) -> int:
    """The first place in the span that is not white space, or its end."""
    while start < end and text[start].isspace():
        start += 1
    return start


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space around it."""
    start = skip_space(text, start, end)
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def between_words(text: str, place: int) -> bool:
    """Whether a cut here leaves every word whole."""
    if place <= 0 or place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if before.isspace() or after.isspace():
        return True
    if max(before, after) < _FIRST_UNSPACED:
        return False
    unspaced = _UNSPACED.match(before) or _UNSPACED.match(after)
    return bool(unspaced) and between_characters(text, place)


def between_characters(text: str, place: int) -> bool:
    """Whether a cut here leaves every visible character whole."""
    before, after = text[place - 1], text[place]
    if before == _ZERO_WIDTH_JOINER or _EXTENDS.match(after) or unicodedata.category(after)[0] == "M":
        return False
    if _REGIONAL.match(before) and _REGIONAL.match(after):
        run = text[max(0, place - LONGEST_FLAGS) : place]
        letters = len(run) - len(run.rstrip(_REGIONAL_LETTERS))
        return letters % 2 == 0
    return True


def last_cut(text: str, limit: int, floor: int) -> int:
    """The best cut at or before `limit` and behind `floor`: between words, or characters where it must be."""
    for place in range(limit, max(floor, limit - LOOK), -1):
        if between_words(text, place):
            return place
    for place in range(limit, max(floor, limit - LONGEST_CLUSTER), -1):
        if between_characters(text, place):
            return place
    return max(limit, floor + 1)


def word_end(text: str, start: int, end: int) -> int:
    """Where the word at `start` ends; one character on when it has no end within reach."""
    for place in range(start + 1, min(end, start + LOOK)):
        if between_words(text, place):
            return place
    return end if end <= start + LOOK else start + 1


def next_word(text: str, place: int, ceiling: int) -> int:
    """The first word start at or behind `place`; `ceiling` when there is none before it."""
    for start in range(place, ceiling):
        if not text[start].isspace() and between_words(text, start):
            return start
    # A cut inside an endless word is followed by another one.
    inside = place < ceiling and not between_words(text, ceiling) and between_characters(text, place)
    return place if inside else ceiling
