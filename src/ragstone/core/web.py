"""Results of a web search, as data and as passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ragstone.core.answers import SITE
from ragstone.core.errors import InputError
from ragstone.core.ids import content_hash
from ragstone.core.types import Hit

MOST_WEB_RESULTS = 20
WEB = "internet"
"""The source that web results name as theirs."""
WEB_ID = "web:"
"""How the chunk ids of web results begin; no chunk of a kb has such an id."""


@dataclass(frozen=True, slots=True)
class WebResult:
    """A page that a search engine found, and what it says of it."""

    title: str
    url: str
    snippet: str
    date: str = ""
    """When the page was published, as an ISO date; empty when nobody knows."""
    provider: str = ""

    @property
    def site(self) -> str:
        """The page's host without `www.`."""
        return (urlsplit(self.url).hostname or "").removeprefix("www.")


@dataclass(frozen=True, slots=True)
class WebFindings:
    """The results of a web search. `problem` says why some are missing."""

    query: str
    results: tuple[WebResult, ...]
    cached: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class KeptResults:
    """Results of an earlier search, and whether they are still as good as new."""

    results: tuple[WebResult, ...]
    is_fresh: bool


def no_web_search() -> InputError:
    """Return the error for a web search that is not configured."""
    return InputError(
        "no web search is set up",
        hint="set web.kind (searxng, brave, tavily, google, fixture) in ragstone.yaml, "
        "or in the environment: RAGSTONE_WEB__KIND=searxng RAGSTONE_WEB__URL=http://localhost:8080",
    )


def web_hits(results: Sequence[WebResult]) -> tuple[Hit, ...]:
    """The results as passages; those without a word are left out. Their score is their rank's."""
    return tuple(_hit(rank, result) for rank, result in enumerate(results, 1) if result.snippet)


def is_web(chunk_id: str) -> bool:
    """Return whether a passage comes from the web, not from a kb."""
    return chunk_id.startswith(WEB_ID)


def _hit(rank: int, result: WebResult) -> Hit:
    name = WEB_ID + content_hash(f"{result.url}\n{result.snippet}")[:32]
    return Hit(
        chunk_id=name,
        document_id=name,
        title=result.title or result.site,
        uri=result.url,
        section="",
        page=None,
        text=result.snippet,
        score=round(1 / (1 + rank), 6),
        scores={"web": float(rank)},
        metadata={"source": WEB, SITE: result.site, "date": result.date, "provider": result.provider},
        start=0,
        end=len(result.snippet),
    )
