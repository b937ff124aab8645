"""Stories of Hacker News: by search (Algolia's API) or from its front pages (the Firebase API)."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from ragstone.core.clock import canonical, now
from ragstone.core.errors import FetchError
from ragstone.core.types import Failure, Item, Json, Page, failure_of
from ragstone.fetch.polite import PoliteFetcher
from ragstone.fetch.urls import canonical_link, redact_url
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.paging import PageTurn
from ragstone.ingest.sources.web.feeds import as_page
from ragstone.ingest.sources.web.pages import WebAddress, in_known_charset, media_type, read_json, unreadable_answer
from ragstone.settings.base import SettingsModel

ALGOLIA = "https://hn.algolia.com/api/v1"
FIREBASE = "https://hacker-news.firebaseio.com/v0"
DISCUSSION = "https://news.ycombinator.com/item?id="
HITS_PER_PAGE = 100
REACH = 1000
"""The most hits that the search shows, however many there are."""
MAX_SLICES = 500
LISTED = 500
DAY = 86400


class HackerNewsConfig(SettingsModel):
    """The stories to read."""

    stories: Literal["search", "top", "new", "best"] = "top"
    query: str = ""
    """Words to search for; every story of the time when there are none."""
    days: int = Field(default=7, ge=1, le=7000)
    """The days that a first search goes back; later ones go on where it was."""
    min_points: int = Field(default=0, ge=0)
    """With it a search reads stories a day after they were posted, when their points say something."""
    limit: int = Field(default=100, ge=1, le=500)
    """The number of the front page's stories to look at."""
    full_text: bool = False
    """Fetch the page that a story links to."""
    base_url: WebAddress | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """A story as either API tells it."""

    id: str
    title: str
    link: str
    text: str
    author: str
    points: int
    comments: int
    created: int

    @property
    def body(self) -> str:
        """Return its own text and its link, as HTML."""
        place = html.escape(self.link)
        return self.text + (f'<p><a href="{place}">{place}</a></p>' if place else "")


class HackerNewsSource(StatelessSource):
    """Reads stories, each once: points and comments are those of that moment."""

    def __init__(self, config: HackerNewsConfig, name: str, context: SourceContext) -> None:
        self._config = config
        self._name = name
        # An API is made for programs; only the linked pages are somebody's site.
        self._api = PoliteFetcher(context.fetcher, robots=False, seconds=0.0)
        self._pages = PoliteFetcher(context.fetcher)
        default = ALGOLIA if config.stories == "search" else FIREBASE
        self._base = (config.base_url or default).rstrip("/")

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield stories that are new since the last time."""
        pages = self._search(cursor or {}) if self._config.stories == "search" else self._front(cursor or {})
        async for page in pages:
            yield page

    async def _search(self, cursor: Mapping[str, int]) -> AsyncIterator[Page]:
        """Yield the newest first, in slices of time: the API shows a thousand hits of each.

        The cursor says since when (`since`) and, until the oldest is reached, up to when (`until`) stories are
        still to be read; `newest` becomes the next run's `since`.
        """
        latest = int(now().timestamp()) - (DAY if self._config.min_points else 0)
        since = cursor.get("since") or latest - self._config.days * DAY
        until = cursor.get("until") or latest
        newest = max(cursor.get("newest") or 0, since)
        reached: Json = {"since": since, "until": until, "newest": newest}
        entries: list[Item | Failure] = []
        done: set[str] = set()
        for _ in range(MAX_SLICES):
            count, oldest = 0, until
            for number in range(REACH // HITS_PER_PAGE):
                hits, more = await self._hits(since, until, number)
                count += len(hits)
                fresh = [story for story in hits if story.id not in done]
                done.update(story.id for story in fresh)
                moments = [story.created for story in hits]
                oldest, newest = min([oldest, *moments]), max([newest, *moments])
                turn = PageTurn()
                for story in fresh:
                    entries += await self._entries(story)
                    if turn.due(0):
                        # A run that breaks off here must read the rest of these hits again.
                        yield Page(tuple(entries), reached)
                        entries, turn = [], PageTurn()
                reached = {"since": since, "until": oldest, "newest": newest}
                yield Page(tuple(entries), reached)
                entries = []
                if not more:
                    break
            if count < REACH or until <= since:
                yield Page((), {"since": newest})
                return
            # The second of the last hit is asked for again, unless it alone fills a slice.
            until = oldest if oldest < until else until - 1

    async def _hits(self, since: int, until: int, number: int) -> tuple[list[Story], bool]:
        """Return one page of stories, and whether there are more."""
        answer = await self._json(
            "/search_by_date",
            {
                "query": self._config.query,
                "tags": "story",
                "numericFilters": f"created_at_i>{since},created_at_i<={until}",
                "hitsPerPage": HITS_PER_PAGE,
                "page": number,
            },
        )
        hits = answer.get("hits") if isinstance(answer, dict) else None
        if not isinstance(hits, list):
            raise unreadable_answer(self._base)
        stories = [_of_hit(hit) for hit in hits if isinstance(hit, dict)]
        return stories, number + 1 < _count(answer.get("nbPages"))

    async def _front(self, cursor: Mapping[str, Any]) -> AsyncIterator[Page]:
        listed = await self._json(f"/{self._config.stories}stories.json")
        if not isinstance(listed, list):
            raise unreadable_answer(self._base)
        seen: list[int] = list(cursor.get("seen") or [])
        known = set(seen)
        ids = [number for number in listed if isinstance(number, int)][: self._config.limit]
        for number in [number for number in ids if number not in known]:
            try:
                raw = await self._json(f"/item/{number}.json")
            except FetchError as problem:
                failure = failure_of(f"{DISCUSSION}{number}", problem)
                yield Page((failure,), {"seen": seen})
                continue
            story = _of_item(raw if isinstance(raw, dict) else {})
            lacks_points = story.title and story.points < self._config.min_points
            # One that is not served yet, or has too few points, may be read later.
            if raw is not None and not lacks_points:
                # A story that left the list may come back: some more are kept than a list holds.
                seen = [*seen, number][-2 * LISTED :]
            yield Page(tuple(await self._entries(story)), {"seen": seen})

    async def _entries(self, story: Story) -> list[Item | Failure]:
        """Return the document of a story, and what of it was not to be had; nothing for one that is not wanted."""
        if not (story.id and story.title and story.points >= self._config.min_points):
            return []
        content, kind = as_page(story.title, story.body), "text/html"
        lost: list[Item | Failure] = []
        if self._config.full_text and story.link:
            try:
                page = await self._pages.get(story.link)
                content, kind = in_known_charset(page), media_type(page)
            except FetchError as problem:
                said = f"{problem}; only the story's own text was taken"
                lost = [failure_of(redact_url(story.link), problem, said)]
        created = datetime.fromtimestamp(story.created, UTC)
        place = story.link or f"{DISCUSSION}{story.id}"
        item = Item(
            source=self._name,
            external_id=story.id,
            uri=place,
            content=content,
            title=story.title,
            metadata={
                "source_type": "hacker_news",
                "url": place,
                "published_date": canonical(created),
                "source": "Hacker News",
                "author": story.author,
                "points": story.points,
                "comments": story.comments,
                "discussion": f"{DISCUSSION}{story.id}",
            },
            modified_at=created,
            media_type=kind,
        )
        return [item, *lost]

    async def _json(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        return read_json(await self._api.get(self._base + path, params=params), self._base)


def _of_hit(hit: Mapping[str, Any]) -> Story:
    return _read(hit, "objectID", "story_text", "author", "points", "num_comments", "created_at_i")


def _of_item(item: Mapping[str, Any]) -> Story:
    gone = item.get("dead") or item.get("deleted")
    return _read({} if gone else item, "id", "text", "by", "score", "descendants", "time")


def _read(
    raw: Mapping[str, Any], number: str, text: str, author: str, points: str, comments: str, created: str
) -> Story:
    """Read a story by the names that its API has for each field; what is missing is empty."""
    return Story(
        id=str(raw.get(number) or ""),
        title=str(raw.get("title") or ""),
        link=canonical_link(str(raw.get("url") or "")),
        text=str(raw.get(text) or ""),
        author=str(raw.get(author) or ""),
        points=_count(raw.get(points)),
        comments=_count(raw.get(comments)),
        created=_count(raw.get(created)),
    )


def _count(value: Any) -> int:
    """Return a number that the calendar has room for too."""
    return min(max(value, 0), 2**35) if isinstance(value, int) else 0
