"""`SearchSession` without async, for the loop of a `Ragstone`."""

from __future__ import annotations

from typing import Any, TypeVar

from ragstone.blocking.run import Run
from ragstone.core.types import SearchResult
from ragstone.query.session import SearchSession

T = TypeVar("T")


class BlockingSession:
    """Searches that remember: none is made twice while the kb stays as it is."""

    def __init__(self, session: SearchSession, run: Run) -> None:
        self._session = session
        self._run = run

    def search(self, query: str, **options: Any) -> SearchResult:
        return self._run(self._session.search(query, **options))
