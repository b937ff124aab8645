from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError
from tests.doubles.imap import ImapDouble, MailboxDouble

from ragstone.core.errors import AddressRefused, FetchError, SourceError
from ragstone.core.types import Failure, Item, Page
from ragstone.fetch.fetcher import Fetcher
from ragstone.ingest.sources.config import SourceContext
from ragstone.ingest.sources.mail.imap import ImapConfig, ImapSource
from ragstone.ingest.sources.mail.imap_session import encode_mailbox
from ragstone.settings.tree import FetchSettings, LimitSettings

INBOX = "INBOX"


def letter(number: int, body: str = "The ferry leaves.") -> bytes:
    return f"Date: Tue, 5 May 2026 10:00:00 +0000\r\nSubject: {number}\r\n\r\n{body}\r\n".encode()


@pytest.fixture
def server() -> Iterator[ImapDouble]:
    with ImapDouble({INBOX: MailboxDouble(7, {3: letter(3), 5: letter(5)})}) as double:
        yield double


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(FetchSettings(allow=("127.0.0.1",)))
    yield fetcher
    await fetcher.close()


def source(server: ImapDouble, fetcher: Fetcher, **config: Any) -> ImapSource:
    settings = {"host": "127.0.0.1", "user": "anna", "password": "secret", "security": "none", "timeout": 5}
    context = SourceContext(fetcher, LimitSettings(file_mb=1), {})
    return ImapSource(ImapConfig(port=server.port, **(settings | config)), "post", context)


async def pages(reader: ImapSource, cursor: Any = None) -> list[Page]:
    return [page async for page in reader.fetch(cursor)]


def entries(found: list[Page]) -> list[Item | Failure]:
    return [entry for page in found for entry in page.items]


def uris(found: list[Page]) -> list[str]:
    return [entry.uri for entry in entries(found)]


async def test_messages_are_items_and_nothing_is_marked_as_read(server: ImapDouble, fetcher: Fetcher) -> None:
    found = await pages(source(server, fetcher))
    assert entries(found) == [
        Item(
            source="post",
            external_id=f"INBOX;UIDVALIDITY=7;UID={uid}",
            uri=f"imap://127.0.0.1/INBOX;UID={uid}",
            content=letter(uid),
            metadata={"source_type": "email", "mailbox": "INBOX"},
            modified_at=datetime(2026, 5, 5, 10, tzinfo=UTC),
            media_type="message/rfc822",
        )
        for uid in (3, 5)
    ]
    assert found[-1].listed == frozenset({"INBOX;UIDVALIDITY=7;UID=3", "INBOX;UIDVALIDITY=7;UID=5"})
    assert server.commands == [
        "CAPABILITY",
        "AUTHENTICATE PLAIN",
        'EXAMINE "INBOX"',
        "FETCH 1:2 (UID RFC822.SIZE)",
        "UID FETCH 3,5 (UID BODY.PEEK[])",
        "LOGOUT",
    ]


async def test_only_new_mails_are_fetched_and_what_vanished_is_not_listed(server: ImapDouble, fetcher: Fetcher) -> None:
    reader = source(server, fetcher)
    cursor = (await pages(reader))[-1].cursor
    assert uris(await pages(reader, cursor)) == []
    del server.mailboxes[INBOX].messages[3]
    server.mailboxes[INBOX].messages[8] = letter(8)
    again = await pages(reader, cursor)
    assert uris(again) == ["imap://127.0.0.1/INBOX;UID=8"]
    assert again[-1].listed == frozenset({"INBOX;UIDVALIDITY=7;UID=5", "INBOX;UIDVALIDITY=7;UID=8"})


async def test_a_mailbox_numbered_anew_is_read_anew(server: ImapDouble, fetcher: Fetcher) -> None:
    reader = source(server, fetcher)
    cursor = (await pages(reader))[-1].cursor
    server.mailboxes[INBOX].validity = 8
    again = await pages(reader, cursor)
    assert len(entries(again)) == 2
    assert again[-1].listed == frozenset({"INBOX;UIDVALIDITY=8;UID=3", "INBOX;UIDVALIDITY=8;UID=5"})


async def test_several_mailboxes_each_have_their_place(server: ImapDouble, fetcher: Fetcher) -> None:
    server.mailboxes[encode_mailbox("Gesendet & Entwürfe")] = MailboxDouble(1, {1: letter(1)})
    reader = source(server, fetcher, mailboxes=("INBOX", "Gesendet & Entwürfe"))
    found = await pages(reader)
    assert uris(found)[-1] == "imap://127.0.0.1/Gesendet%20%26%20Entw%C3%BCrfe;UID=1"
    assert found[-1].cursor == {"INBOX": {"validity": 7, "uid": 5}, "Gesendet & Entwürfe": {"validity": 1, "uid": 1}}
    server.mailboxes[INBOX].messages[9] = letter(9)
    assert uris(await pages(reader, found[-1].cursor)) == ["imap://127.0.0.1/INBOX;UID=9"]


async def test_a_run_goes_on_behind_the_last_page_that_was_kept(server: ImapDouble, fetcher: Fetcher) -> None:
    server.mailboxes[INBOX].messages = {uid: letter(uid) for uid in range(1, 71)}
    reader = source(server, fetcher)
    found = await pages(reader)
    assert [len(page.items) for page in found] == [32, 32, 6, 0]
    assert uris(await pages(reader, found[0].cursor)) == uris(found[1:])


async def test_a_mailbox_that_cannot_be_opened_takes_nothing_away(server: ImapDouble, fetcher: Fetcher) -> None:
    found = await pages(source(server, fetcher, mailboxes=("Gone", "INBOX")))
    first, *others = entries(found)
    assert isinstance(first, Failure)
    assert (first.uri, first.code) == ("imap://127.0.0.1/Gone", "not_found")
    assert len(others) == 2
    assert found[-1].listed is None


async def test_a_mail_that_is_too_large_is_not_fetched(server: ImapDouble, fetcher: Fetcher) -> None:
    server.sizes[3] = 2_000_000
    first, second = entries(await pages(source(server, fetcher)))
    assert isinstance(first, Failure)
    assert (first.uri, first.code) == ("imap://127.0.0.1/INBOX;UID=3", "too_large")
    assert isinstance(second, Item)
    assert "UID FETCH 5 (UID BODY.PEEK[])" in server.commands


async def test_a_mail_that_is_too_large_is_named_by_every_run_until_it_is_allowed(
    server: ImapDouble, fetcher: Fetcher
) -> None:
    server.sizes[3] = 2_000_000
    first = await pages(source(server, fetcher))
    again = await pages(source(server, fetcher), first[-1].cursor)
    assert [(entry.uri, type(entry)) for entry in entries(again)] == [("imap://127.0.0.1/INBOX;UID=3", Failure)]
    assert again[-1].cursor == first[-1].cursor
    server.sizes[3] = 1_000
    allowed = await pages(source(server, fetcher), again[-1].cursor)
    assert [type(entry) for entry in entries(allowed)] == [Item]
    assert allowed[-1].cursor == {INBOX: {"validity": 7, "uid": 5}}


async def test_a_mail_that_could_not_be_had_is_asked_for_again_until_it_is_gone(
    server: ImapDouble, fetcher: Fetcher
) -> None:
    server.answers = {"UID FETCH 3": "NO damaged"}
    cursor = (await pages(source(server, fetcher)))[-1].cursor
    server.mailboxes[INBOX].messages[9] = letter(9)
    for _ in range(2):
        found = await pages(source(server, fetcher), cursor)
        cursor = found[-1].cursor
        assert uris(found)[0] == "imap://127.0.0.1/INBOX;UID=3"
        assert cursor == {INBOX: {"validity": 7, "uid": 9, "unread": [3]}}
    del server.mailboxes[INBOX].messages[3]
    assert entries(await pages(source(server, fetcher), cursor)) == []


async def test_a_mail_that_is_larger_than_it_said_is_refused(server: ImapDouble, fetcher: Fetcher) -> None:
    server.mailboxes[INBOX].messages[3] = letter(3, "x" * 1_200_000)
    server.sizes[3] = 100
    first, second = entries(await pages(source(server, fetcher)))
    assert isinstance(first, Failure)
    assert first.code == "too_large"
    assert isinstance(second, Item)


async def test_a_number_behind_the_message_is_found(server: ImapDouble, fetcher: Fetcher) -> None:
    server.uid_behind = True
    assert uris(await pages(source(server, fetcher))) == [
        "imap://127.0.0.1/INBOX;UID=3",
        "imap://127.0.0.1/INBOX;UID=5",
    ]


async def test_mails_the_server_cannot_give_are_reported_one_by_one(server: ImapDouble, fetcher: Fetcher) -> None:
    server.answers = {"UID FETCH 3": "NO damaged"}
    first, second = entries(await pages(source(server, fetcher)))
    assert isinstance(first, Failure)
    assert (first.uri, first.code) == ("imap://127.0.0.1/INBOX;UID=3", "unreadable")
    assert isinstance(second, Item)


async def test_a_listing_with_gaps_removes_nothing(server: ImapDouble, fetcher: Fetcher) -> None:
    reader = source(server, fetcher)
    server.answers = {"FETCH": "OK done"}
    assert (await pages(reader))[-1].listed is None


async def test_a_wrong_password_is_named_without_being_told(server: ImapDouble, fetcher: Fetcher) -> None:
    server.password = "canary"
    for server.capabilities in ("IMAP4rev1 AUTH=PLAIN", "IMAP4rev1"):
        with pytest.raises(SourceError, match=r"127\.0\.0\.1 refused the login of anna") as caught:
            await pages(source(server, fetcher, password="guess"))
        shown = f"{caught.value!r} {caught.value.hint} {caught.value.__cause__!r}"
        assert "canary" not in shown
        assert "guess" not in shown


async def test_a_server_without_plain_takes_a_login(server: ImapDouble, fetcher: Fetcher) -> None:
    server.capabilities = "IMAP4rev1"
    assert len(entries(await pages(source(server, fetcher)))) == 2
    assert 'LOGIN "anna" "secret"' in server.commands


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"CAPABILITY": "CUT"}, FetchError),
        ({"AUTHENTICATE": "CUT"}, FetchError),
        ({"EXAMINE": "CUT"}, FetchError),
        ({"UID": "CUT"}, FetchError),
        ({"FETCH": "NO not now"}, FetchError),
        ({"EXAMINE": "BAD what"}, SourceError),
    ],
)
async def test_a_server_that_fails_is_a_failure_of_the_source(
    server: ImapDouble, fetcher: Fetcher, answers: dict[str, str], error: type[Exception]
) -> None:
    server.answers = answers
    with pytest.raises(error, match=r"127\.0\.0\.1"):
        await pages(source(server, fetcher))


async def test_a_plain_server_is_not_spoken_to_in_the_clear(server: ImapDouble, fetcher: Fetcher) -> None:
    with pytest.raises(FetchError, match=r"no secure connection to 127\.0\.0\.1"):
        await pages(source(server, fetcher, security="tls"))
    assert not any("secret" in command for command in server.commands)


async def test_an_address_that_is_not_public_is_refused(server: ImapDouble) -> None:
    with pytest.raises(AddressRefused):
        await pages(source(server, Fetcher(FetchSettings())))
    assert server.commands == []


@pytest.mark.parametrize("name", ["", "IN\r\nBOX", "a\x00b"])
def test_a_name_cannot_carry_a_command(name: str) -> None:
    with pytest.raises(ValidationError, match="on one line"):
        ImapConfig(host="mail.example", user="anna", password="x", mailboxes=(name,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "encoded"), [("INBOX", "INBOX"), ("A&B", "A&-B"), ("Entwürfe", "Entw&APw-rfe"), ("台北", "&U,BTFw-")]
)
def test_names_are_written_as_imap_does(name: str, encoded: str) -> None:
    assert encode_mailbox(name) == encoded
