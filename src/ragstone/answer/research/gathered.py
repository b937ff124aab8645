"""What the searches of one research have brought so far: every passage once, with the queries that found it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ragstone.answer.research.relevance import ABOUT
from ragstone.core.types import Hit, SearchResult
from ragstone.language.analyzer import analyze_query


@dataclass(slots=True)
class Gathered:
    """Passages by chunk id in the order they were found; the same words under two ids count once."""

    topic: str
    hits: dict[str, Hit] = field(default_factory=dict)
    found_by: dict[str, list[str]] = field(default_factory=dict)
    cosines: dict[str, float] = field(default_factory=dict)
    """How near passages are to the topic, as its own search said."""
    relevance: dict[str, float] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    degraded: dict[str, None] = field(default_factory=dict)
    """Remarks, each once, in order."""
    _same: dict[str, str] = field(default_factory=dict)

    def add(self, query: str, result: SearchResult) -> None:
        """Take in what a query brought."""
        self.degraded.update(dict.fromkeys(result.degraded))
        for hit in result.hits:
            chunk_id = self._same.setdefault(" ".join(hit.text.casefold().split()), hit.chunk_id)
            self.hits.setdefault(chunk_id, hit)
            finders = self.found_by.setdefault(chunk_id, [])
            if query not in finders:
                finders.append(query)
            if query == self.topic and "dense" in hit.scores:
                self.cosines.setdefault(chunk_id, hit.scores["dense"])

    @property
    def unjudged(self) -> list[Hit]:
        """Passages whose relevance is not known yet."""
        return [hit for chunk_id, hit in self.hits.items() if chunk_id not in self.relevance]

    def judged(self, hits: Sequence[Hit], relevance: Sequence[float]) -> int:
        """Note how relevant passages are; how many of them are about the topic."""
        # Under the id they were gathered by, which is that of the first passage with these words.
        self.relevance.update(zip((hit.chunk_id for hit in hits), relevance, strict=True))
        return sum(value >= ABOUT for value in relevance)

    @property
    def about(self) -> list[Hit]:
        """The passages that are surely about the topic, most relevant first."""
        return [hit for hit in self.ranked if self.is_about(hit)]

    @property
    def ranked(self) -> list[Hit]:
        """All passages that were judged, most relevant first."""
        judged = [hit for chunk_id, hit in self.hits.items() if chunk_id in self.relevance]
        return sorted(judged, key=lambda hit: (-self.relevance[hit.chunk_id], hit.chunk_id))

    def is_about(self, hit: Hit) -> bool:
        """Whether a passage is surely about the topic."""
        return self.relevance[hit.chunk_id] >= ABOUT

    def uncovered(self, queries: Sequence[str]) -> tuple[str, ...]:
        """Those that found nothing about the topic, and the topic itself while a term of it is nowhere."""
        about = self.about
        met = {query for hit in about for query in self.found_by[hit.chunk_id]}
        wanting = [query for query in queries if query not in met]
        text = "\n".join(f"{hit.title}\n{hit.section}\n{hit.text}" for hit in about)
        if self.topic not in wanting and not set(analyze_query(self.topic)) <= set(analyze_query(text)):
            wanting.insert(0, self.topic)
        return tuple(wanting)
