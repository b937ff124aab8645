"""What a word of an English sentence can be, by its form: enough to tell a verb from the nouns around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ragstone.answer.verify.lexicon import (
    ADVERBS,
    BE,
    HAVE,
    LINKS,
    MODALS,
    NUMBERS,
    OBJECTS,
    OWNING,
    PARTICIPLES,
    PASTS,
    PREPOSITIONS,
    QUANTIFYING,
    SUBJECTS,
    VERBS,
)

Kind = Literal[
    "auxiliary",
    "determiner",
    "pronoun",
    "object",
    "preposition",
    "link",
    "adverb",
    "number",
    "past",
    "participle",
    "s",
    "name",
    "word",
]
"""A `past` is finite wherever it stands, a `participle` may be; an `s` is a verb or a plural."""


_VERBAL = re.compile(
    r"(?:\w{2}[iy]f(?:ies|ied|y)|\w{3}(?:i[sz]|at)(?:es|ed|e)|\w{2}(?:duc|ceiv|quir|clud|solv|serv)(?:es|ed|e))$"
)
"""Endings that few nouns have."""
_TOKEN = re.compile(r"[^\W_][\w'’.-]{0,60}(?<![.'’-])")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, where it stands, and what its form says."""

    word: str
    start: int
    end: int
    kind: Kind

    @property
    def is_nominal(self) -> bool:
        return self.kind in ("word", "s", "name", "number", "pronoun")


def tokens(text: str) -> list[Token]:
    """The words of a text in order."""
    return [
        Token(match.group().lower(), *match.span(), _kind(match.group(), match.start() == 0))
        for match in _TOKEN.finditer(text)
    ]


def _kind(written: str, first: bool) -> Kind:
    word = written.lower()
    if written == "May" and not first:
        return "name"
    closed: tuple[tuple[frozenset[str], Kind], ...] = (
        (BE | HAVE | MODALS, "auxiliary"),
        (OWNING | QUANTIFYING, "determiner"),
        (SUBJECTS, "pronoun"),
        (OBJECTS, "object"),
        (PREPOSITIONS, "preposition"),
        (LINKS, "link"),
        (ADVERBS, "adverb"),
        (NUMBERS, "number"),
        (PASTS, "past"),
        (PARTICIPLES, "participle"),
    )
    for words, kind in closed:
        if word in words:
            return kind
    return _open_kind(written, word, first)


def _open_kind(written: str, word: str, first: bool) -> Kind:
    if word.endswith(("n't", "n’t")):
        return "auxiliary"
    if word[0].isdigit():
        return "number"
    if written[0].isupper() and not first:
        return "name"
    if word.endswith("ly") and len(word) > 4:
        return "adverb"
    if word.endswith("ed") and len(word) > 3 and not word.endswith("eed"):
        return "participle"
    return "s" if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")) else "word"


def is_known_verb(word: str) -> bool:
    """Whether a word is, by a list of frequent ones or by its ending, a verb in any of its finite forms."""
    return not _stems(word).isdisjoint(VERBS) or _VERBAL.match(word) is not None


def _stems(word: str) -> set[str]:
    """What a finite form may be a form of."""
    stems = {
        word,
        word.removesuffix("s"),
        word.removesuffix("es"),
        word.removesuffix("d"),
        word.removesuffix("ed"),
    }
    if word.endswith(("ies", "ied")):
        stems.add(f"{word[:-3]}y")
    if word.endswith("ed") and word[-3:-2] == word[-4:-3]:
        stems.add(word[:-3])
    return stems
