"""SearXNG: a metasearch engine that people host themselves."""

from __future__ import annotations

from ragstone.core.web import WebResult
from ragstone.settings.web import WebSettings
from ragstone.websearch.cleaning import best, fitting, result
from ragstone.websearch.service import SearchService


class SearXNG:
    """Implements `WebSearch`."""

    name = "searxng"

    def __init__(self, settings: WebSettings) -> None:
        headers = {}
        if settings.api_key is not None:
            # SearXNG knows no keys, but a proxy before it may.
            headers["authorization"] = f"Bearer {settings.api_key.get_secret_value()}"
        url = f"{(settings.url or '').rstrip('/').removesuffix('/search')}/search"
        self._service = SearchService("SearXNG", url, settings, headers)

    async def search(self, query: str, k: int) -> list[WebResult]:
        reply = await self._service.get({"q": fitting(query), "format": "json"})
        with self._service.reading():
            found = [
                result(self.name, one["title"], one["url"], one.get("content"), one.get("publishedDate"))
                for one in reply["results"]
            ]
        return best(found, k)

    async def close(self) -> None:
        await self._service.close()
