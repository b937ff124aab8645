"""Gmail: all mail at first, then what its history says has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence

from pydantic import SecretStr

from ragstone.core.batches import batched
from ragstone.core.errors import FetchError, ParseError
from ragstone.core.types import Failure, Item, Json, Page, failure_of
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.mail.gmail_api import SERVICE, GmailClient, GmailMessage, OAuthClient
from ragstone.ingest.sources.mail.mailboxes import MEDIA_TYPE
from ragstone.ingest.sources.paging import PageTokens, PageTurn
from ragstone.settings.base import SettingsModel

AT_ONCE = 8
"""Messages asked for at the same time; Gmail allows about fifty a second."""


class GmailConfig(SettingsModel):
    client_id: str
    client_secret: SecretStr
    refresh_token: SecretStr
    query: str = ""
    """Only mails that Gmail's own search finds by this, such as `label:fares newer_than:2y`."""
    exclude: tuple[str, ...] = ("SPAM", "TRASH", "DRAFT")
    """Mails with one of these labels are left out, and removed when they get one."""
    base_url: str = "https://gmail.googleapis.com/gmail/v1"
    token_url: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address


class GmailSource(StatelessSource):
    """The mails of one Gmail account."""

    def __init__(self, config: GmailConfig, name: str, context: SourceContext) -> None:
        self._config = config
        self._name = name
        self._max_bytes = context.limits.file_mb * 1024 * 1024
        oauth = OAuthClient(config.client_id, config.client_secret, config.refresh_token, config.token_url)
        self._client = GmailClient(context.fetcher, oauth, config.base_url, self._max_bytes)

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield what changed since the cursor's point in history; all mail when it has none or lies too far back."""
        names = await self._client.labels()
        unread: set[str] = set(cursor.get("unread", ())) if isinstance(cursor, Mapping) else set()
        match cursor:
            case {"history": str(since), "page": str(page)}:
                pages = self._everything(names, unread, since, page)
            case {"history": str(since)}:
                pages = self._changes(names, unread, since)
            case _:
                pages = self._everything(names, set(), "", "")
        async for found in pages:
            yield found

    async def _everything(
        self, names: Mapping[str, str], unread: set[str], since: str, page: str
    ) -> AsyncIterator[Page]:
        """Yield all mail. The history begins before the listing does, so that nothing falls between them."""
        resumed = bool(page)
        listed: set[str] = set()
        since = since or await self._client.history_point()
        tokens = PageTokens(SERVICE)
        while True:
            ids, following = await self._ids(page)
            listed.update(ids)
            async for items, gone in self._messages(names, ids, unread):
                yield Page(items, _cursor(since, unread, page=page), removed=gone)
            following = tokens.follow(following)
            if not following:
                break
            page = following
        if resumed:
            # What was deleted before this history began is told by a whole list only.
            turn = PageTurn()
            async for message_id in self._client.all_ids(self._config.query):
                listed.add(message_id)
                if turn.due(0):
                    yield Page((), _cursor(since, unread, page=page))
                    turn = PageTurn()
        yield Page((), _cursor(since, unread), listed=frozenset(listed))

    async def _ids(self, page: str) -> tuple[list[str], str]:
        try:
            return await self._client.message_ids(self._config.query, page)
        except FetchError as error:
            if error.status != 400 or not page:
                raise
            # A page's token does not live for ever: what was read already is known when it is met again.
            return await self._client.message_ids(self._config.query, "")

    async def _changes(self, names: Mapping[str, str], unread: set[str], since: str) -> AsyncIterator[Page]:
        """Yield what happened since a point in history, and messages that could not be read before."""
        page, tokens = "", PageTokens(SERVICE)
        matching: set[str] | None = None
        untouched = set(unread)
        while True:
            changes = await self._client.changes(since, page)
            if changes is None:
                async for found in self._everything(names, set(), "", ""):
                    yield found
                return
            touched: Sequence[str] = changes.touched
            removed = changes.deleted
            untouched.difference_update(touched, removed)
            if touched and self._config.query:
                if matching is None:
                    matching = {message_id async for message_id in self._client.all_ids(self._config.query)}
                removed = (*removed, *(message_id for message_id in touched if message_id not in matching))
                touched = [message_id for message_id in touched if message_id in matching]
            async for items, gone in self._messages(names, touched, unread):
                yield Page(items, _cursor(since, unread), removed=gone)
            unread.difference_update(removed)
            page = tokens.follow(changes.next_page)
            point = since if page else changes.history
            if removed or point != since:
                yield Page((), _cursor(point, unread), removed=tuple(removed))
            if not page:
                break
        async for items, gone in self._messages(names, sorted(untouched), unread):
            yield Page(items, _cursor(point, unread), removed=gone)

    async def _messages(
        self, names: Mapping[str, str], ids: Iterable[str], unread: set[str]
    ) -> AsyncIterator[tuple[tuple[Item | Failure, ...], tuple[str, ...]]]:
        """Yield a few items at a time, and the ids that are gone or left out; those that fail are noted in `unread`."""
        for some in batched(list(ids), AT_ONCE):
            found = dict(zip(some, await self._entries(names, some, unread), strict=True))
            unread.difference_update(some)
            unread.update(message_id for message_id, entry in found.items() if isinstance(entry, Failure))
            gone = tuple(message_id for message_id, entry in found.items() if entry is None)
            yield tuple(entry for entry in found.values() if entry is not None), gone

    async def _entries(
        self, names: Mapping[str, str], ids: Iterable[str], unread: Collection[str]
    ) -> list[Item | Failure | None]:
        """Read messages at the same time. When one fails the others are cancelled."""
        asked = [
            asyncio.ensure_future(self._entry(names, message_id, doubtful=message_id in unread)) for message_id in ids
        ]
        try:
            return await asyncio.gather(*asked)
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _entry(self, names: Mapping[str, str], message_id: str, *, doubtful: bool) -> Item | Failure | None:
        if doubtful and await self._client.size(message_id) > self._max_bytes:
            return self._too_large(message_id)
        try:
            message = await self._client.message(message_id)
        except FetchError as error:
            if error.status != 200 or await self._client.size(message_id) <= self._max_bytes:
                raise
            return self._too_large(message_id)
        except ParseError as error:
            return failure_of(f"gmail:{message_id}", error)
        if message is None or not set(message.labels).isdisjoint(self._config.exclude):
            return None
        if len(message.content) > self._max_bytes:
            return self._too_large(message_id)
        return self._item(names, message)

    def _item(self, names: Mapping[str, str], message: GmailMessage) -> Item:
        return Item(
            source=self._name,
            external_id=message.id,
            uri=f"gmail:{message.id}",
            content=message.content,
            metadata={
                "source_type": "email",
                "source": "gmail",
                "thread_id": message.thread_id,
                "labels": [names.get(label, label) for label in message.labels],
            },
            modified_at=message.received,
            media_type=MEDIA_TYPE,
        )

    def _too_large(self, message_id: str) -> Failure:
        uri = f"gmail:{message_id}"
        return Failure(uri, "too_large", f"{uri} is larger than limits.file_mb allows")


def _cursor(history: str, unread: Iterable[str], **more: Json) -> Json:
    noted: Json = sorted(unread)
    return {"history": history, **more} | ({"unread": noted} if noted else {})
