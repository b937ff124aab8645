"""Adapters to web search services, and a fixture for tests and demos."""

from __future__ import annotations

import asyncio
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragstone.core.clock import canonical, parse_mail_date, parse_moment
from ragstone.core.errors import SettingsError
from ragstone.core.search import WebResult
from ragstone.settings.web import WebSettings
from ragstone.websearch.service import SearchService


def _read_pages(
    provider: str, pages: Iterable[Mapping[str, Any]], k: int, *, snippet: str, date: str, markup: bool = False
) -> list[WebResult]:
    """Return the first k results of an answer, given the names that the engine has for the fields."""
    results = [
        make_result(provider, page["title"], page["url"], page.get(snippet), page.get(date), markup=markup)
        for page in pages
    ]
    return first_results(results, k)


BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"


class Brave:
    """Implements `WebSearch`."""

    name = "brave"

    def __init__(self, settings: WebSettings) -> None:
        assert settings.api_key is not None
        headers = {"x-subscription-token": settings.api_key.get_secret_value()}
        self._service = SearchService("Brave", settings.url or BRAVE_URL, settings, headers)

    async def search(self, query: str, k: int) -> list[WebResult]:
        reply = await self._service.get({"q": fit_query(query), "count": k})
        with self._service.reading():
            # A query without web pages has no such part at all.
            pages = reply.get("web", {}).get("results", [])
            return _read_pages(self.name, pages, k, snippet="description", date="page_age", markup=True)

    async def close(self) -> None:
        await self._service.close()


GOOGLE_URL = "https://www.googleapis.com/customsearch/v1"
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
        self._service = SearchService("Google", settings.url or GOOGLE_URL, settings, headers)

    async def search(self, query: str, k: int) -> list[WebResult]:
        reply = await self._service.get({"cx": self._engine, "q": fit_query(query), "num": min(k, MOST)})
        with self._service.reading():
            # Without results there is no list of them.
            pages = [{**page, "url": page["link"], "date": _publication_date(page)} for page in reply.get("items", [])]
            return _read_pages(self.name, pages, k, snippet="snippet", date="date")

    async def close(self) -> None:
        await self._service.close()


def _publication_date(item: dict[str, Any]) -> object:
    tags = item.get("pagemap", {}).get("metatags", [])
    return tags[0].get("article:published_time") if tags else None


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
        reply = await self._service.get({"q": fit_query(query), "format": "json"})
        with self._service.reading():
            return _read_pages(self.name, reply["results"], k, snippet="content", date="publishedDate")

    async def close(self) -> None:
        await self._service.close()


TAVILY_URL = "https://api.tavily.com/search"


class Tavily:
    """Implements `WebSearch`."""

    name = "tavily"

    def __init__(self, settings: WebSettings) -> None:
        assert settings.api_key is not None
        headers = {"authorization": f"Bearer {settings.api_key.get_secret_value()}"}
        self._service = SearchService("Tavily", settings.url or TAVILY_URL, settings, headers)

    async def search(self, query: str, k: int) -> list[WebResult]:
        reply = await self._service.post({"query": fit_query(query), "max_results": k, "search_depth": "basic"})
        with self._service.reading():
            return _read_pages(self.name, reply["results"], k, snippet="content", date="published_date")

    async def close(self) -> None:
        await self._service.close()


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
        return first_results(self._lists.get(_key(query), self._lists.get(ANY, [])), k)

    async def close(self) -> None:
        self._lists = None


def _read(path: Path) -> Mapping[str, list[WebResult | None]]:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        return {
            _key(query): [
                make_result("fixture", page["title"], page["url"], page["snippet"], page.get("date")) for page in found
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


LONGEST_QUERY, MOST_WORDS = 400, 50
"""The most characters and words that the strictest engine takes; more words find less."""

LONGEST_TITLE, LONGEST_SNIPPET, LONGEST_URL = 300, 2000, 2000

READ = 4
"""Times the limit that are looked at, so that markup does not crowd out the words."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

TAG = re.compile(r"<[^<>]{0,200}>")

UNSEEN = ("Cf", "Cs", "Co")

JOINERS = "\u200c\u200d"
"""Unseen too, but some scripts cannot be written without them."""


def fit_query(query: str) -> str:
    """Return as much of a query as every engine takes, cut between words."""
    words = query.split()[:MOST_WORDS]
    while len(words) > 1 and len(" ".join(words)) > LONGEST_QUERY:
        words.pop()
    return " ".join(words)[:LONGEST_QUERY]


def make_result(
    provider: str, title: object, url: object, snippet: object, date: object = None, *, markup: bool = False
) -> WebResult | None:
    """Return one result, or None when it has no web address."""
    if not isinstance(url, str) or not _is_page(url):
        return None
    return WebResult(
        title=_plain(title, LONGEST_TITLE, markup=markup),
        url=url,
        snippet=_plain(snippet, LONGEST_SNIPPET, markup=markup),
        date=_day(date),
        provider=provider,
    )


def first_results(found: Iterable[WebResult | None], k: int) -> list[WebResult]:
    """Return the first k that are results, each page once."""
    pages: dict[str, WebResult] = {}
    for page in found:
        if page is not None:
            pages.setdefault(page.url, page)
        if len(pages) == k:
            break
    return list(pages.values())


def _is_page(url: str) -> bool:
    if len(url) > LONGEST_URL or any(character <= " " or character == "\x7f" for character in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _plain(value: object, limit: int, *, markup: bool) -> str:
    if not isinstance(value, str):
        return ""
    text = value[: limit * READ]
    if markup:
        text = html.unescape(TAG.sub("", text))
    seen = "".join(
        character for character in text if character in JOINERS or unicodedata.category(character) not in UNSEEN
    )
    words = " ".join(CONTROL.sub(" ", seen).split())
    return words if len(words) <= limit else words[:limit].rpartition(" ")[0] or words[:limit]


def _day(value: object) -> str:
    if not isinstance(value, str):
        return ""
    moment = parse_moment(value[:64]) or parse_mail_date(value[:64])
    return canonical(moment)[:10] if moment else ""
