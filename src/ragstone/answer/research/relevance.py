"""Relevance of passages to a query, on one scale for all embedding models.

The score of a search ranks passages against each other: the best of many bad ones still scores high. Here a
passage is compared with sentences about nothing in particular (see `language.relevance`), and the query's terms
that it holds are added. On the sample corpus the best passage of an answerable question reaches 0.52 to 1.1,
that of a question about something else 0.08 to 0.31.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragstone.answer.parts import PassagePlace, place_of
from ragstone.core.protocols import Embedder
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze_query
from ragstone.language.relevance import COVERAGE_WEIGHT, UnrelatedVectors, scale_cosines, term_share

ABOUT = 0.4
"""Relevance from which a passage counts as being about the query."""
WORDS_ALONE = 2 / 3
"""Relevance of full coverage without a model."""
Cosines = Mapping[PassagePlace, float]
"""Closeness of passages to the query, as far as a search has told it."""


class Relevance:
    """Judges passages; keeps the vectors of unrelated sentences."""

    def __init__(self) -> None:
        self._unrelated = UnrelatedVectors()

    async def judge(self, query: str, hits: Sequence[Hit], embedder: Embedder | None, known: Cosines) -> list[float]:
        """Return the relevance of each hit from 0 to 1, by words alone without an embedder; its errors are raised."""
        covered = await asyncio.to_thread(lambda: [term_share(query, _read(hit)) for hit in hits])
        if embedder is None:
            return [round(WORDS_ALONE * share, 6) for share in covered]
        near = await self._closeness(query, hits, embedder, known)
        return [
            round(min(max(closeness + COVERAGE_WEIGHT * share, 0.0), 1.0), 6)
            for closeness, share in zip(near, covered, strict=True)
        ]

    async def _closeness(self, query: str, hits: Sequence[Hit], embedder: Embedder, known: Cosines) -> list[float]:
        asked = await embedder.embed([query], "query")
        vector = asked.vectors[0]
        unrelated = await self._unrelated.load(embedder, asked.model)
        cosines = dict(known)
        missing = [hit for hit in hits if place_of(hit) not in cosines]
        if missing:
            vectors = (await embedder.embed([_read(hit) for hit in missing], "document")).vectors
            for hit, cosine in zip(missing, vectors @ vector, strict=True):
                cosines[place_of(hit)] = float(cosine)
        return scale_cosines([cosines[place_of(hit)] for hit in hits], vector, unrelated)


def _read(hit: Hit) -> str:
    """Return a passage with its title and headings."""
    return f"{hit.title}\n{hit.section}\n{hit.text}"


@dataclass(slots=True)
class GatheredPassages:
    """Passages by place in the order they were found; the same words in two places count once."""

    topic: str
    hits: dict[PassagePlace, Hit] = field(default_factory=dict)
    found_by: dict[PassagePlace, list[str]] = field(default_factory=dict)
    cosines: dict[PassagePlace, float] = field(default_factory=dict)
    """Closeness of passages to the topic, from its own search."""
    relevance: dict[PassagePlace, float] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    degraded: dict[str, None] = field(default_factory=dict)
    """Remarks, each once, in order."""
    _same: dict[str, PassagePlace] = field(default_factory=dict)

    def add(self, query: str, result: SearchResult) -> None:
        """Take in what a query brought."""
        self.degraded.update(dict.fromkeys(result.degraded))
        for hit in result.hits:
            place = self._same.setdefault(" ".join(hit.text.casefold().split()), self._find_holder(place_of(hit)))
            self.hits.setdefault(place, hit)
            finders = self.found_by.setdefault(place, [])
            if query not in finders:
                finders.append(query)
            if query == self.topic and "dense" in hit.scores:
                self.cosines.setdefault(place, hit.scores["dense"])

    def _find_holder(self, place: PassagePlace) -> PassagePlace:
        """Return the place of the passage that one is a part of; its own if it is new."""
        return next((known for known in self.hits if known.holds(place)), place)

    @property
    def hits_to_judge(self) -> list[Hit]:
        """Return passages whose relevance is not known yet."""
        return [hit for place, hit in self.hits.items() if place not in self.relevance]

    def add_relevance(self, hits: Sequence[Hit], relevance: Sequence[float]) -> int:
        """Record the relevance of passages; return how many are about the topic."""
        self.relevance.update(zip(map(place_of, hits), relevance, strict=True))
        return sum(value >= ABOUT for value in relevance)

    @property
    def about(self) -> list[Hit]:
        """Return the passages that are surely about the topic, most relevant first."""
        return [hit for hit in self.by_relevance if self.is_about(hit)]

    @property
    def by_relevance(self) -> list[Hit]:
        """Return all passages that were judged, most relevant first."""
        judged = [hit for place, hit in self.hits.items() if place in self.relevance]
        return sorted(judged, key=lambda hit: (-self.relevance[place_of(hit)], place_of(hit)))

    def is_about(self, hit: Hit) -> bool:
        """Return whether a passage is surely about the topic."""
        return self.relevance[place_of(hit)] >= ABOUT

    def find_uncovered(self, queries: Sequence[str]) -> tuple[str, ...]:
        """Return those that found nothing about the topic, and the topic itself while a term of it is nowhere."""
        about = self.about
        met = {query for hit in about for query in self.found_by[place_of(hit)]}
        wanting = [query for query in queries if query not in met]
        text = "\n".join(map(_read, about))
        if self.topic not in wanting and not set(analyze_query(self.topic)) <= set(analyze_query(text)):
            wanting.insert(0, self.topic)
        return tuple(wanting)
