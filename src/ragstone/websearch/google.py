"""Google Custom Search: a programmable search engine, named by its id."""

from __future__ import annotations

from typing import Any

from ragstone.core.web import WebResult
from ragstone.settings.web import WebSettings
from ragstone.websearch.cleaning import best, fitting, result
from ragstone.websearch.service import SearchService

URL = "https://www.googleapis.com/customsearch/v1"
MOST = 10
"""Results of one request; it takes no larger number."""


class Google:
    """Implements `WebSearch`."""

    name = "google"

    def __init__(self, settings: WebSettings) -> None:
        assert settings.api_key is not None
        assert settings.engine_id is not None
        # In a header: an address with the key in it would stand in logs.
        headers = {"x-goog-api-key": settings.api_key.get_secret_value()}
        self._engine = settings.engine_id
        self._service = SearchService("Google", settings.url or URL, settings, headers)

    async def search(self, query: str, k: int) -> list[WebResult]:
        reply = await self._service.get({"cx": self._engine, "q": fitting(query), "num": min(k, MOST)})
        with self._service.reading():
            # Without results there is no list of them.
            found = [
                result(self.name, one["title"], one["link"], one.get("snippet"), _published(one))
                for one in reply.get("items", [])
            ]
        return best(found, k)

    async def close(self) -> None:
        await self._service.close()


def _published(item: dict[str, Any]) -> object:
    tags = item.get("pagemap", {}).get("metatags", [])
    return tags[0].get("article:published_time") if tags else None
