from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from ragstone.core.search import SearchResult
from ragstone.core.types import Hit

Search = Callable[[str], Awaitable[SearchResult]]


def result(query: str, hits: Sequence[Hit]) -> SearchResult:
    return SearchResult(query, query, "thorough", tuple(hits), (), (), 1.0)


class Library:
    """Finds the passages that were filed under a query's words; keeps the queries."""

    def __init__(self, shelves: Mapping[str, Sequence[Hit]]) -> None:
        self.shelves = shelves
        self.queries: list[str] = []

    async def __call__(self, query: str) -> SearchResult:
        self.queries.append(query)
        words = query.casefold()
        return result(query, [hit for word, hits in self.shelves.items() if word in words for hit in hits])


@pytest.fixture
def library() -> type[Library]:
    return Library
