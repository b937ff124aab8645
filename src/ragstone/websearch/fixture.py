"""Results from a file: for tests, demonstrations and machines without a way out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

from ragstone.core.errors import SettingsError
from ragstone.core.web import WebResult
from ragstone.settings.web import WebSettings
from ragstone.websearch.cleaning import best, result

ANY = "*"
"""The key of what every other query finds."""


class Fixture:
    """Implements `WebSearch` over a JSON object of lists of results by query."""

    name = "fixture"

    def __init__(self, settings: WebSettings) -> None:
        assert settings.path is not None
        self._path = settings.path
        self._lists: Mapping[str, list[WebResult | None]] | None = None

    async def search(self, query: str, k: int) -> list[WebResult]:
        if self._lists is None:
            self._lists = await asyncio.to_thread(_read, self._path)
        return best(self._lists.get(_key(query), self._lists.get(ANY, [])), k)

    async def close(self) -> None:
        self._lists = None


def _read(path: Path) -> Mapping[str, list[WebResult | None]]:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        return {
            _key(query): [
                result("fixture", one["title"], one["url"], one["snippet"], one.get("date")) for one in found
            ]
            for query, found in tree.items()
        }
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"web.path cannot be used: {path} ({type(error).__name__})",
            hint='it must hold {"a query": [{"title": "…", "url": "https://…", "snippet": "…"}], "*": []}',
        ) from error


def _key(query: str) -> str:
    return " ".join(query.casefold().split())
