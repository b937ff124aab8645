"""Tavily: a search engine made for language models."""

from __future__ import annotations

from ragstone.core.web import WebResult
from ragstone.settings.web import WebSettings
from ragstone.websearch.cleaning import best, fitting, result
from ragstone.websearch.service import SearchService

URL = "https://api.tavily.com/search"


class Tavily:
    """Implements `WebSearch`."""

    name = "tavily"

    def __init__(self, settings: WebSettings) -> None:
        assert settings.api_key is not None
        headers = {"authorization": f"Bearer {settings.api_key.get_secret_value()}"}
        self._service = SearchService("Tavily", settings.url or URL, settings, headers)

    async def search(self, query: str, k: int) -> list[WebResult]:
        reply = await self._service.post({"query": fitting(query), "max_results": k, "search_depth": "basic"})
        with self._service.reading():
            found = [
                result(self.name, one["title"], one["url"], one.get("content"), one.get("published_date"))
                for one in reply["results"]
            ]
        return best(found, k)

    async def close(self) -> None:
        await self._service.close()
