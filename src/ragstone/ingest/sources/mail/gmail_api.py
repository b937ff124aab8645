"""Gmail's REST interface: the few calls that reading mail takes, with a token that renews itself."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from pydantic import SecretStr

from ragstone.core.errors import FetchError, ParseError, SourceError
from ragstone.core.types import Json
from ragstone.ingest.sources.paging import PageTokens

if TYPE_CHECKING:
    from ragstone.fetch.fetcher import Fetcher

SERVICE = "Gmail"
LIST_SIZE = 500
_SPARE_SECONDS = 60.0
_HISTORY = ("messageAdded", "messageDeleted", "labelAdded", "labelRemoved")


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """The operator's own OAuth client and the consent of the account's owner."""

    client_id: str
    client_secret: SecretStr
    refresh_token: SecretStr
    token_url: str


@dataclass(frozen=True, slots=True)
class GmailMessage:
    """A message as Gmail keeps it."""

    id: str
    thread_id: str
    labels: tuple[str, ...]
    """Ids of its labels."""
    content: bytes
    received: datetime | None


@dataclass(frozen=True, slots=True)
class MailChanges:
    """A page of what happened since a point in the mailbox's history."""

    touched: tuple[str, ...]
    """Messages that are new or have other labels."""
    deleted: tuple[str, ...]
    history: str
    """The point up to which all pages together tell."""
    next_page: str


class GmailClient:
    """Calls for one account."""

    def __init__(self, fetcher: Fetcher, oauth: OAuthClient, base_url: str, max_bytes: int) -> None:
        self._fetcher = fetcher
        self._oauth = oauth
        self._account = f"{base_url.rstrip('/')}/users/me"
        self._max_bytes = max_bytes
        self._token = ""
        self._valid_until = 0.0
        self._renewing = asyncio.Lock()

    async def history_point(self) -> str:
        """Return the current point in the mailbox's history."""
        return _text(await self._get("profile"), "historyId")

    async def labels(self) -> Mapping[str, str]:
        """Return the names of labels by their ids."""
        answer = await self._get("labels")
        return {_text(label, "id"): _text(label, "name") for label in _rows(answer, "labels")}

    async def message_ids(self, query: str, page: str) -> tuple[list[str], str]:
        """Return a page of ids of the messages that match, newest first, and the token of the next page."""
        given = {"maxResults": str(LIST_SIZE), "q": query, "pageToken": page}
        answer = await self._get("messages", [(key, value) for key, value in given.items() if value])
        return [_text(row, "id") for row in _rows(answer, "messages")], _optional(answer, "nextPageToken")

    async def all_ids(self, query: str) -> AsyncIterator[str]:
        """Yield the ids of all messages that match."""
        page, tokens = "", PageTokens(SERVICE)
        while True:
            ids, following = await self.message_ids(query, page)
            for message_id in ids:
                yield message_id
            page = tokens.follow(following)
            if not page:
                return

    async def changes(self, since: str, page: str) -> MailChanges | None:
        """Return what happened since that point; None when Gmail no longer knows it."""
        given = [("startHistoryId", since), *(("historyTypes", kind) for kind in _HISTORY)]
        try:
            answer = await self._get("history", [*given, *([("pageToken", page)] if page else [])])
        except FetchError as error:
            if error.status == 404:
                return None
            raise
        records = list(_rows(answer, "history"))
        touched = _messages_of(records, ("messagesAdded", "labelsAdded", "labelsRemoved"))
        deleted = _messages_of(records, ("messagesDeleted",))
        kept = tuple(message_id for message_id in touched if message_id not in deleted)
        return MailChanges(kept, deleted, _text(answer, "historyId"), _optional(answer, "nextPageToken"))

    async def message(self, message_id: str) -> GmailMessage | None:
        """Return a message as it was sent; None when it is gone. `ParseError` for one that cannot be decoded."""
        answer = await self._message(message_id, "RAW")
        if answer is None:
            return None
        labels = answer.get("labelIds")
        received = _optional(answer, "internalDate")
        return GmailMessage(
            id=message_id,
            thread_id=_text(answer, "threadId"),
            labels=tuple(map(str, labels)) if isinstance(labels, list) else (),
            content=_decode_raw(_text(answer, "raw"), message_id),
            received=_moment(received) if received.isdecimal() else None,
        )

    async def size(self, message_id: str) -> int:
        """Return about how many bytes a message has; 0 when it is gone."""
        answer = await self._message(message_id, "MINIMAL")
        size = answer.get("sizeEstimate") if answer else 0
        return size if isinstance(size, int) else 0

    async def _message(self, message_id: str, form: str) -> dict[str, Json] | None:
        try:
            return await self._get(f"messages/{quote(message_id, safe='')}", [("format", form)])
        except FetchError as error:
            if error.status == 404:
                return None
            raise

    async def _get(self, path: str, parameters: Iterable[tuple[str, str]] = ()) -> dict[str, Json]:
        query = urlencode(list(parameters))
        url = f"{self._account}/{path}{'?' if query else ''}{query}"
        token = await self._valid_token()
        try:
            return await self._answer(url, token)
        except FetchError as error:
            if error.status != 401:
                raise
        # Revoked before its time: a new token settles whether the consent still stands.
        return await self._answer(url, await self._valid_token(refused=token))

    async def _answer(self, url: str, token: str) -> dict[str, Json]:
        headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
        # A message comes as base64, in JSON.
        room = self._max_bytes // 3 * 4 + 1024 * 1024
        answer = await self._fetcher.get(url, headers=headers, max_bytes=room)
        return _object(answer.content, "Gmail")

    async def _valid_token(self, refused: str = "") -> str:
        """Return the token in use, or a new one, asked for once by all who wait for it."""
        async with self._renewing:
            if self._token == refused or time.monotonic() >= self._valid_until:
                await self._renew()
            return self._token

    async def _renew(self) -> None:
        its = self._oauth
        form = {
            "grant_type": "refresh_token",
            "client_id": its.client_id,
            "client_secret": its.client_secret.get_secret_value(),
            "refresh_token": its.refresh_token.get_secret_value(),
        }
        try:
            answer = await self._fetcher.post(its.token_url, form=form)
        except FetchError as error:
            if error.status in (400, 401, 403):
                raise SourceError(
                    f"{its.token_url} gives no access: it answered {error.status}",
                    hint="check client_id and client_secret, sign in again and set the new refresh_token",
                ) from error
            raise
        token = _object(answer.content, "the token service")
        seconds = token.get("expires_in")
        self._token = _text(token, "access_token")
        self._valid_until = time.monotonic() + (seconds if isinstance(seconds, int) else 0) - _SPARE_SECONDS


def _object(content: bytes, who: str) -> dict[str, Json]:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise FetchError(f"{who} sent no JSON, or only part of it", hint="try again later") from problem
    if not isinstance(answer, dict):
        raise FetchError(f"{who} sent JSON of another form than documented", hint="try again later")
    return answer


def _text(answer: Mapping[str, Json], key: str) -> str:
    value = answer.get(key)
    if not isinstance(value, str) or not value:
        raise FetchError(f"an answer of Gmail lacks '{key}'", hint="try again later")
    return value


def _optional(answer: Mapping[str, Json], key: str) -> str:
    value = answer.get(key)
    return value if isinstance(value, str) else ""


def _rows(answer: Mapping[str, Json], key: str) -> Iterable[dict[str, Json]]:
    rows = answer.get(key) or []
    if not isinstance(rows, list):
        raise FetchError(f"'{key}' in an answer of Gmail is no list", hint="try again later")
    return (row for row in rows if isinstance(row, dict))


def _messages_of(records: Iterable[Mapping[str, Json]], kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the messages that records of these kinds speak of, each once, in order."""
    kinds = tuple(kinds)
    rows = (row for record in records for kind in kinds for row in _rows(record, kind))
    return tuple(dict.fromkeys(_text(row.get("message") or {}, "id") for row in rows))


def _decode_raw(raw: str, message_id: str) -> bytes:
    try:
        return base64.b64decode(raw + "=" * (-len(raw) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as problem:
        raise ParseError(f"gmail:{message_id} is not encoded as Gmail documents it") from problem


def _moment(milliseconds: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(milliseconds[:16]) // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
