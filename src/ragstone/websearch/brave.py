"""Brave Search: an engine with an index of its own."""

from __future__ import annotations

from ragstone.core.web import WebResult
from ragstone.settings.web import WebSettings
from ragstone.websearch.cleaning import best, fitting, result
from ragstone.websearch.service import SearchService

URL = "https://api.search.brave.com/res/v1/web/search"


class Brave:
    """Implements `WebSearch`."""

    name = "brave"

    def __init__(self, settings: WebSettings) -> None:
        assert settings.api_key is not None
        headers = {"x-subscription-token": settings.api_key.get_secret_value()}
        self._service = SearchService("Brave", settings.url or URL, settings, headers)

    async def search(self, query: str, k: int) -> list[WebResult]:
        reply = await self._service.get({"q": fitting(query), "count": k})
        with self._service.reading():
            # A query without web pages has no such part at all.
            found = [
                result(
                    self.name,
                    one["title"],
                    one["url"],
                    one.get("description"),
                    one.get("page_age"),
                    markup=True,
                )
                for one in reply.get("web", {}).get("results", [])
            ]
        return best(found, k)

    async def close(self) -> None:
        await self._service.close()
