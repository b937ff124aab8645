"""Things that are told apart by a number behind their name: Room 5 is not Room 12."""

from __future__ import annotations

import re
from collections import defaultdict

from ragstone.language.analyzer import analyze

_NUMBERED = re.compile(r"([^\W\d_]{1,40})\.?[ \t]{1,3}(?:no\.?|#)?[ \t]?(\d{1,9})(?![.,]?\w)", re.I)
_MORE = re.compile(r"\s{0,3}(?:,|and|or|to|&|[-–/])\s{0,3}\d", re.I)
_STANDS_ALONE = re.compile(r"(?<!\S)\d{1,9}(?!\S)\s?")


def is_another(label: str, words: str) -> bool:
    """Whether words speak of a thing by the same name as a label, and by another number."""
    spoken_of = _numbers(words)
    return any(
        name in spoken_of and None not in spoken_of[name] and spoken_of[name].isdisjoint(numbers)
        for name, numbers in _numbers(label).items()
    )


def unnumbered(label: str, words: str) -> tuple[str, str]:
    """A label and words that have all of it, both without its number: it counts nothing."""
    name = _STANDS_ALONE.sub("", label).strip()
    whole = re.compile(rf"(?<!\w){re.escape(label)}(?!\w)", re.I)
    if not name or name == label or not whole.search(words):
        return label, words
    return name, whole.sub(lambda _: name, words)


def _numbers(words: str) -> dict[str, set[int | None]]:
    """The numbers that stand behind each name; None where there are more of them ("rooms 5 to 8")."""
    found: dict[str, set[int | None]] = defaultdict(set)
    for pair in _NUMBERED.finditer(words):
        for name in analyze(pair[1])[:1]:
            found[name].add(None if _MORE.match(words, pair.end()) else int(pair[2]))
    return found
