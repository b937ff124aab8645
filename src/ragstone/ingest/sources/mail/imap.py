"""An IMAP account: new mails of its mailboxes, those that could not be had before, and those that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from urllib.parse import quote

from pydantic import Field, SecretStr, field_validator

from ragstone.core.types import Failure, Item, Json, Page
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.mail.imap_session import ImapSession, Mailbox, Security, Server
from ragstone.ingest.sources.mail.mailboxes import MEDIA_TYPE, read_head
from ragstone.ingest.sources.paging import batch_by_size
from ragstone.settings.base import SettingsModel

PAGE_ITEMS = 32
PAGE_BYTES = 8 * 1024 * 1024


class ImapConfig(SettingsModel):
    host: str
    user: str
    password: SecretStr
    port: int = Field(default=993, ge=1, le=65535)
    security: Security = "tls"
    mailboxes: tuple[str, ...] = ("INBOX",)
    timeout: float = Field(default=60.0, gt=0)

    @field_validator("user", "mailboxes")
    @classmethod
    def _one_line(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for text in (value,) if isinstance(value, str) else value:
            if not text or not text.isprintable():
                raise ValueError("a name must be printable characters on one line")
        return value


@dataclass(frozen=True, slots=True)
class _MailboxPlace:
    """The point up to which a mailbox has been read."""

    validity: int
    uid: int = 0
    unread: frozenset[int] = frozenset()
    """Messages up to there that could not be read."""

    def behind(self, batch: Sequence[int], unread: Set[int]) -> _MailboxPlace:
        return replace(self, uid=max(self.uid, batch[-1]), unread=self.unread.difference(batch) | unread)

    def json(self) -> Json:
        place: dict[str, Json] = {"validity": self.validity, "uid": self.uid}
        return place | {"unread": sorted(self.unread)} if self.unread else place


class ImapSource(StatelessSource):
    """The messages of one account."""

    def __init__(self, config: ImapConfig, name: str, context: SourceContext) -> None:
        self._config = config
        self._name = name
        self._fetcher = context.fetcher
        self._max_bytes = context.limits.file_mb * 1024 * 1024

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield new mails and those that could not be read before; at the end a list of all."""
        session = await self._connect()
        try:
            seen: dict[str, Json] = dict(cursor) if isinstance(cursor, Mapping) else {}
            listed: set[str] | None = set()
            for name in self._config.mailboxes:
                mailbox = await asyncio.to_thread(session.open_mailbox, name)
                if mailbox is None:
                    listed = None  # what is in it is not gone
                    yield Page((self._report_closed(name),), seen)
                    continue
                sizes = await asyncio.to_thread(session.sizes, mailbox)
                if listed is not None:
                    listed.update(_identity(name, mailbox, uid) for uid in sizes)
                    listed = listed if len(sizes) == mailbox.count else None
                async for items, place in self._new(session, name, mailbox, sizes, _place(seen, name, mailbox)):
                    seen = seen | {name: place.json()}
                    yield Page(items, seen)
            yield Page((), seen, listed=None if listed is None else frozenset(listed))
        finally:
            await asyncio.to_thread(session.close)

    async def _connect(self) -> ImapSession:
        its = self._config
        address = await self._fetcher.address(its.host, its.port)
        server = Server(its.host, address, its.port, its.security, its.timeout)
        return await asyncio.to_thread(ImapSession, server, its.user, its.password.get_secret_value())

    async def _new(
        self, session: ImapSession, name: str, mailbox: Mailbox, sizes: Mapping[int, int], place: _MailboxPlace
    ) -> AsyncIterator[tuple[tuple[Item | Failure, ...], _MailboxPlace]]:
        """Yield pages of new items, each with the place after it."""
        due = [uid for uid in sorted(sizes) if uid > place.uid or uid in place.unread]

        def weigh(uid: int) -> int:
            return sizes[uid] if sizes[uid] <= self._max_bytes else 0  # what is too large is not fetched

        for batch in batch_by_size(due, weigh, PAGE_ITEMS, PAGE_BYTES):
            wanted = [uid for uid in batch if sizes[uid] <= self._max_bytes]
            messages = await asyncio.to_thread(session.messages, wanted) if wanted else {}
            # What is neither there nor too large was deleted a moment ago.
            entries = {
                uid: self._entry(name, mailbox, uid, sizes[uid], messages.get(uid))
                for uid in batch
                if uid in messages or uid not in wanted
            }
            place = place.behind(batch, {uid for uid, entry in entries.items() if isinstance(entry, Failure)})
            yield tuple(entries.values()), place

    def _entry(self, name: str, mailbox: Mailbox, uid: int, size: int, content: bytes | None) -> Item | Failure:
        uri = f"imap://{self._config.host}/{quote(name)};UID={uid}"
        size = max(size, len(content or b""))
        if size > self._max_bytes:
            megabytes = size / 1024 / 1024
            return Failure(uri, "too_large", f"{uri} has {megabytes:.0f} MB, more than limits.file_mb allows")
        if content is None:
            return Failure(uri, "unreadable", f"the server cannot give {uri}")
        return Item(
            source=self._name,
            external_id=_identity(name, mailbox, uid),
            uri=uri,
            content=content,
            metadata={"source_type": "email", "mailbox": name},
            modified_at=read_head(content).date,
            media_type=MEDIA_TYPE,
        )

    def _report_closed(self, name: str) -> Failure:
        uri = f"imap://{self._config.host}/{quote(name)}"
        return Failure(uri, "not_found", f"the mailbox {uri} cannot be opened; nothing of it was removed")


def _place(seen: Mapping[str, Json], name: str, mailbox: Mailbox) -> _MailboxPlace:
    known = seen.get(name, {})
    if known.get("validity") != mailbox.validity:
        return _MailboxPlace(mailbox.validity)
    return _MailboxPlace(mailbox.validity, known["uid"], frozenset(known.get("unread", ())))


def _identity(name: str, mailbox: Mailbox, uid: int) -> str:
    return f"{name};UIDVALIDITY={mailbox.validity};UID={uid}"
