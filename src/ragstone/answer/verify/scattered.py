"""Words of a statement that its sources say elsewhere: a passage may have all of them and yet say another thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragstone.answer.verify.fit import Clause, count_shared, read_clauses, read_sentence
from ragstone.language.vocabulary import Word, content_words, read_vocabulary

NEAR = 0.75
"""Share of what the nearest sentence has of a clause from which another is near as well."""
_MOST_BACK = 4
"""Sentences that one may point back over."""


def find_scattered(statement: str, sentences: Sequence[str]) -> list[Word]:
    """Return the words that stand neither in the sentences which say most of a statement nor in those they lean on."""
    read = [read_sentence(sentence) for sentence in sentences]
    kept: set[int] = set()
    for clause in {read_sentence(statement), *read_clauses(statement)}:
        for place in find_nearest_places(clause, read):
            kept.update(_find_context(place, read))
    around = read_vocabulary(" ".join(sentences[place] for place in sorted(kept)))
    everywhere = read_vocabulary(" ".join(sentences))
    return [word for word in content_words(statement) if not around.has(word) and everywhere.has_itself(word)]


def find_nearest_places(clause: Clause, read: Sequence[Clause]) -> list[int]:
    """Return the places of the sentences that share most words, names and figures with a clause."""
    counts = [count_shared(clause, sentence) for sentence in read]
    most = max(counts, default=0)
    return [place for place, count in enumerate(counts) if count and count >= NEAR * most]


def _find_context(place: int, read: Sequence[Clause]) -> Iterator[int]:
    """Yield a place, the one before it, and those before that as long as a pronoun points back."""
    first = max(0, place - _MOST_BACK)
    for at in range(place, first - 1, -1):
        yield at
        if at < place and not read[at].points_back:
            return
