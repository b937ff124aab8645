"""Reads WordNet's own database files: `index.noun`, `data.noun` and their like, in a folder the user names.

An index is sorted by lemma and is searched where it lies, so nothing is loaded. A line of it ends with the byte
offsets of the synsets in the data file, the most frequent sense first.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ragstone.core.errors import SettingsError

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
SENSES = 1
"""Senses per part of speech whose words are given: rarer ones mislead more than they help."""
CACHED_TERMS = 10_000
_TERM = re.compile(r"[a-z][a-z0-9.'-]*(?: [a-z0-9.'-]+)*")
_ENDINGS: Mapping[str, Sequence[tuple[str, str]]] = {
    "noun": [("ies", "y"), ("men", "man"), ("es", ""), ("s", "")],
    "verb": [("ies", "y"), ("es", "e"), ("es", ""), ("s", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "adj": [("er", ""), ("er", "e"), ("est", ""), ("est", "e")],
    "adv": [],
}
"""The rules that turn an inflected form into a base form, by part of speech."""


class WordNet:
    """Synonyms of a term's most frequent sense in each part of speech."""

    def __init__(self, folder: Path) -> None:
        self._indexes = {part: _map_file(folder, f"index.{part}") for part in PARTS_OF_SPEECH}
        self._data = {part: _map_file(folder, f"data.{part}") for part in PARTS_OF_SPEECH}
        self._remembered = lru_cache(CACHED_TERMS)(self._others)

    def others(self, term: str) -> Sequence[str]:
        """Return the other words of the term's synsets, those of nouns first."""
        return self._remembered(term)

    def _others(self, term: str) -> tuple[str, ...]:
        if not _TERM.fullmatch(term):
            return ()
        found = [word for part in PARTS_OF_SPEECH for word in self._of_part(part, term)]
        return tuple(dict.fromkeys(word for word in found if word.casefold() != term))

    def _of_part(self, part: str, term: str) -> Iterator[str]:
        for base in _bases(part, term):
            line = _line_of(self._indexes[part], base.replace(" ", "_").encode())
            if line:
                for offset in _offsets(line)[:SENSES]:
                    yield from (word for word in _words(self._data[part], offset) if word.lower() != base)
                return


def _map_file(folder: Path, name: str) -> mmap.mmap:
    try:
        with (folder / name).open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"retrieval.wordnet '{folder}' has no readable file '{name}'",
            hint="name the folder with WordNet's database files, such as /usr/share/wordnet",
        ) from error


def _bases(part: str, term: str) -> Iterator[str]:
    """Yield the term itself, then the base forms that it may come from."""
    yield term
    for ending, base in _ENDINGS[part]:
        if term.endswith(ending) and len(term) - len(ending) > 1:
            yield term.removesuffix(ending) + base


def _line_of(index: mmap.mmap, lemma: bytes) -> bytes:
    """Return the line that begins with the lemma, found by bisection; the licence on top sorts before every word."""
    low, high = 0, len(index)
    while low < high:
        middle = (low + high) // 2
        start = index.rfind(b"\n", 0, middle) + 1
        end = index.find(b"\n", middle)
        end = len(index) if end < 0 else end
        line = index[start:end]
        first = line.split(b" ", 1)[0]
        if first == lemma:
            return line
        if first < lemma:
            low = end + 1
        else:
            high = start
    return b""


def _offsets(line: bytes) -> list[int]:
    """Return the last fields of an index line, as many as its third field says."""
    fields = line.split()
    try:
        return [int(field) for field in fields[len(fields) - int(fields[2]) :]]
    except (IndexError, ValueError):
        return []


def _words(data: mmap.mmap, offset: int) -> list[str]:
    """Return the words of a synset: their number is the fourth field in hexadecimal, then word and id take turns."""
    fields = data[offset : max(data.find(b"\n", offset), offset)].split()
    try:
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
    except (IndexError, ValueError):
        return []
    return [_spelt(word.decode("utf-8", "replace")) for word in words]


def _spelt(word: str) -> str:
    """Return a word without the mark of an adjective's position, such as `(p)`."""
    return word.partition("(")[0].replace("_", " ")
