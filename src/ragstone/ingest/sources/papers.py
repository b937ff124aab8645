"""Papers of Semantic Scholar: facts and abstracts from its Graph API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from pydantic import Field, SecretStr

from ragstone.core.clock import parse_moment
from ragstone.core.errors import FetchError
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.fetch.polite import PoliteFetcher
from ragstone.ingest.parsers.draft import one_line
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.web.pages import WebAddress, read_json, unreadable_answer
from ragstone.settings.base import SettingsModel

GRAPH = "https://api.semanticscholar.org/graph/v1"
PAPER = "https://www.semanticscholar.org/paper/"
FIELDS = "title,abstract,authors,citationCount,venue,year,publicationDate,externalIds,url"
SECONDS = 1.0
"""The API takes one request a second."""


class SemanticScholarConfig(SettingsModel):
    """The papers to read."""

    query: str = Field(min_length=1, max_length=1000)
    """Words, phrases in quotes, `|` for or, `-` for not, as the bulk search takes them."""
    year: str = Field(default="", pattern=r"^(\d{4}(-(\d{4})?)?|-\d{4})?$")
    """`2024`, `2020-2024`, `2020-` or `-2015`."""
    limit: int = Field(default=1000, ge=1, le=1_000_000)
    api_key: SecretStr | None = None
    base_url: WebAddress | None = None


class SemanticScholarSource(StatelessSource):
    """Finds papers by a query. Each run goes through all of them, since citations grow."""

    def __init__(self, config: SemanticScholarConfig, name: str, context: SourceContext) -> None:
        self._config = config
        self._name = name
        self._fetcher = PoliteFetcher(context.fetcher, robots=False, seconds=SECONDS)
        self._base = (config.base_url or GRAPH).rstrip("/")

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield the papers, page by page; a run that was interrupted goes on at its page."""
        restarted = False
        token = str((cursor or {}).get("token") or "")
        count = int((cursor or {}).get("count") or 0)
        while True:
            try:
                answer = await self._search(token)
            except FetchError as problem:
                if not token or problem.status != 400 or restarted:
                    raise
                # A token lives for a while only: begin again.
                token, count, restarted = "", 0, True
                continue
            papers = answer["data"][: self._config.limit - count]
            count += len(papers)
            following = str(answer.get("token") or "")
            if not papers or not following or following == token or count >= self._config.limit:
                yield Page(tuple(map(self._item, papers)), {})
                return
            token = following
            yield Page(tuple(map(self._item, papers)), {"token": token, "count": count})

    async def _search(self, token: str) -> Mapping[str, Any]:
        params: dict[str, str | int] = {"query": self._config.query, "fields": FIELDS}
        if self._config.year:
            params["year"] = self._config.year
        if token:
            params["token"] = token
        key = self._config.api_key
        headers = {"x-api-key": key.get_secret_value()} if key else None
        answer = await self._fetcher.get(f"{self._base}/paper/search/bulk", headers=headers, params=params)
        papers = read_json(answer, self._base)
        if not isinstance(papers, dict) or not isinstance(papers.get("data"), list):
            raise unreadable_answer(self._base)
        return papers

    def _item(self, paper: Any) -> Item | Failure:
        identity = paper.get("paperId") if isinstance(paper, dict) else None
        title = one_line(str(paper.get("title") or "")) if identity else ""
        if not title:
            return Failure(f"{PAPER}{identity or ''}", "empty_document", "a paper without a title was left out")
        authors = [str(author["name"]) for author in _records(paper.get("authors")) if author.get("name")]
        url = str(paper.get("url") or f"{PAPER}{identity}")
        doi = paper["externalIds"].get("DOI") if isinstance(paper.get("externalIds"), dict) else None
        venue, year = str(paper.get("venue") or ""), paper.get("year")
        published = str(paper.get("publicationDate") or "")
        facts = {
            "source_type": "paper",
            "url": url,
            "paper_id": str(identity),
            "authors": authors[:200],
            "citations": _whole(paper.get("citationCount")) or 0,
            "venue": venue,
            "year": _whole(year),
            "doi": str(doi) if doi else None,
            "published_date": published or None,
        }
        # Publishers keep some abstracts back; such a paper is still found by its title and its authors.
        byline = ". ".join(part for part in (", ".join(authors[:20]), venue, str(year or "")) if part)
        return Item(
            source=self._name,
            external_id=str(identity),
            uri=url,
            content=str(paper.get("abstract") or "").strip() or byline or title,
            title=title,
            metadata={name: value for name, value in facts.items() if value is not None},
            modified_at=parse_moment(published) if published else None,
            media_type="text/plain",
        )


def _records(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
