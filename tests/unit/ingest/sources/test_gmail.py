"""The Gmail source against answers in the shapes that Google documents, over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.doubles.web import Reply, Request, WebDouble, json_reply

from ragstone.core.errors import FetchError, SourceError
from ragstone.core.types import Failure, Item, Page
from ragstone.fetch.fetcher import Fetcher
from ragstone.ingest.parsers.mail.parser import parse_mail
from ragstone.ingest.sources import paging as page_tokens
from ragstone.ingest.sources.config import SourceContext
from ragstone.ingest.sources.mail.gmail import GmailConfig, GmailSource
from ragstone.settings.tree import FetchSettings, LimitSettings

ME = "/gmail/v1/users/me"
UNAUTHORIZED = json_reply({"error": {"code": 401, "status": "UNAUTHENTICATED"}}, 401)
BUSY = json_reply({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}, 429, retry_after="7")


def letter(number: int) -> bytes:
    return (
        f"From: Anna <anna@harbour.example>\r\nDate: Tue, 5 May 2026 10:00:00 +0000\r\n"
        f"Subject: Fares {number}\r\n\r\nNine for adults ÿ~?>.\r\n"
    ).encode()


class GmailDouble(WebDouble):
    """One account: messages by id, a history that tests write."""

    def __init__(self) -> None:
        super().__init__()
        self.page_size = 2
        self.tokens = ["first"]
        self.messages: dict[str, list[str]] = {}
        self.history: list[dict[str, Any]] = []
        self.oldest_point = 1
        self.on("/token", self._token)
        self.on(f"{ME}/profile", lambda _: json_reply({"emailAddress": "a@x.example", "historyId": "100"}))
        self.on(f"{ME}/messages", self.with_token(self._list))
        self.on(f"{ME}/history", self.with_token(self._history))
        named = [{"id": "INBOX", "name": "INBOX", "type": "system"}, {"id": "Label_7", "name": "Fähren"}]
        self.on(f"{ME}/labels", self.with_token(lambda _: json_reply({"labels": named})))

    def add(self, *ids: str, labels: tuple[str, ...] = ("INBOX", "Label_7")) -> None:
        for one in ids:
            self.messages[one] = list(labels)
            self.on(f"{ME}/messages/{one}", self.with_token(self._message))

    def remove(self, one: str) -> None:
        del self.messages[one]

    def asked_for(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def with_token(self, answer: Any) -> Any:
        def checked(request: Request) -> Reply:
            if request.headers.get("authorization") != f"Bearer {self.tokens[-1]}":
                return UNAUTHORIZED
            found: Reply = answer(request)
            return found

        return checked

    def _token(self, request: Request) -> Reply:
        form = parse_qs(request.body.decode())
        right = {
            "grant_type": ["refresh_token"],
            "client_id": ["mine"],
            "client_secret": ["shh"],
            "refresh_token": ["again"],
        }
        if form != right:
            return json_reply({"error": "invalid_grant"}, 400)
        return json_reply({"access_token": self.tokens[-1], "expires_in": 3599, "token_type": "Bearer"})

    def _list(self, request: Request) -> Reply:
        wanted = request.query.get("q", "")
        visible = [one for one, labels in self.messages.items() if wanted in ("", *labels) and "TRASH" not in labels]
        start = int(request.query.get("pageToken", "0"))
        rows = visible[start : start + self.page_size]
        answer: dict[str, Any] = {"resultSizeEstimate": len(visible)}
        if rows:
            answer["messages"] = [{"id": one, "threadId": f"t{one}"} for one in rows]
        if start + self.page_size < len(visible):
            answer["nextPageToken"] = str(start + self.page_size)
        return json_reply(answer)

    def _message(self, request: Request) -> Reply:
        one = request.path.rpartition("/")[2]
        if one not in self.messages:
            return json_reply({"error": {"code": 404}}, 404)
        content = letter(int(one))
        answer = {"id": one, "threadId": f"t{one}", "labelIds": self.messages[one], "sizeEstimate": len(content)}
        if request.query["format"] == "RAW":
            answer |= {"raw": base64.urlsafe_b64encode(content).decode(), "internalDate": "1777975200000"}
        return json_reply(answer)

    def _history(self, request: Request) -> Reply:
        since = int(request.query["startHistoryId"])
        if since < self.oldest_point:
            return json_reply({"error": {"code": 404, "status": "NOT_FOUND"}}, 404)
        start = int(request.query.get("pageToken", "0"))
        records = [record for record in self.history if int(record["id"]) > since]
        answer: dict[str, Any] = {"historyId": str(max([since, *(int(one["id"]) for one in records)]))}
        if records[start : start + 1]:
            answer["history"] = records[start : start + 1]
        if len(records) > start + 1:
            answer["nextPageToken"] = str(start + 1)
        return json_reply(answer)


def record(point: int, **kinds: str) -> dict[str, Any]:
    """A record of history: `record(101, messagesAdded="4")`."""
    return {"id": str(point)} | {kind: [{"message": {"id": one, "threadId": "t"}}] for kind, one in kinds.items()}


@pytest.fixture
def gmail() -> Iterator[GmailDouble]:
    with GmailDouble() as double:
        assert isinstance(double, GmailDouble)
        yield double


@pytest.fixture
async def waits() -> list[float]:
    return []


@pytest.fixture
async def fetcher(waits: list[float]) -> AsyncIterator[Fetcher]:
    async def wait(seconds: float) -> None:
        waits.append(seconds)

    fetcher = Fetcher(FetchSettings(allow=("127.0.0.1",), retries=2, max_mb=1), wait=wait)
    yield fetcher
    await fetcher.close()


def source(gmail: GmailDouble, fetcher: Fetcher, **config: Any) -> GmailSource:
    settings = {
        "client_id": "mine",
        "client_secret": "shh",
        "refresh_token": "again",
        "base_url": gmail.url("/gmail/v1"),
        "token_url": gmail.url("/token"),
    }
    return GmailSource(
        GmailConfig.model_validate(settings | config), "post", SourceContext(fetcher, LimitSettings(file_mb=1), {})
    )


async def pages(reader: GmailSource, cursor: Any = None) -> list[Page]:
    return [page async for page in reader.fetch(cursor)]


def ids(found: list[Page]) -> list[str]:
    return [entry.external_id for page in found for entry in page.items if isinstance(entry, Item)]


def removed(found: list[Page]) -> list[str]:
    return [one for page in found for one in page.removed]


@pytest.mark.req("R-ING-01", "R-ING-47")
async def test_raw_mails_come_with_their_thread_and_labels(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1")
    found = await pages(source(gmail, fetcher))
    [item] = found[0].items
    assert item == Item(
        source="post",
        external_id="1",
        uri="gmail:1",
        content=letter(1),
        metadata={"source_type": "email", "source": "gmail", "thread_id": "t1", "labels": ["INBOX", "Fähren"]},
        modified_at=datetime(2026, 5, 5, 10, tzinfo=UTC),
        media_type="message/rfc822",
    )
    parsed = parse_mail(letter(1), item.uri)
    keys = {"source", "content_type", "sender", "date", "thread_id", "labels", "has_attachments"}
    assert keys <= {**parsed.metadata, **item.metadata}.keys()
    assert parsed.text.startswith("Subject: Fares 1\n\nNine for adults")


async def test_all_pages_are_read_and_the_history_goes_on_from_before_them(
    gmail: GmailDouble, fetcher: Fetcher
) -> None:
    gmail.add("1", "2", "3", "4", "5")
    found = await pages(source(gmail, fetcher, query="INBOX"))
    assert ids(found) == ["1", "2", "3", "4", "5"]
    assert found[-1].cursor == {"history": "100"}
    assert found[-1].listed == frozenset("12345")
    assert [request.query.get("pageToken") for request in gmail.asked_for(f"{ME}/messages")] == [None, "2", "4"]
    assert {request.query["q"] for request in gmail.asked_for(f"{ME}/messages")} == {"INBOX"}
    assert gmail.paths.index(f"{ME}/profile") < gmail.paths.index(f"{ME}/messages")


async def test_a_run_that_broke_off_goes_on_at_its_page(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1", "2", "3", "4", "5")
    reader = source(gmail, fetcher)
    first = await pages(reader)
    assert first[1].cursor == {"history": "100", "page": "2"}
    again = await pages(reader, first[1].cursor)
    assert ids(again) == ["3", "4", "5"]
    assert again[-1].cursor == {"history": "100"}
    assert again[-1].listed == frozenset("12345")


async def test_a_run_that_broke_off_still_finds_what_was_deleted(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.oldest_point = 50
    gmail.add("1", "2", "3", "4", "5")
    reader = source(gmail, fetcher)
    broken_off = (await pages(reader, {"history": "7"}))[1].cursor
    assert broken_off == {"history": "100", "page": "2"}
    gmail.remove("2")
    gmail.remove("5")
    assert (await pages(reader, broken_off))[-1].listed == frozenset("134")


async def test_a_run_that_only_lists_is_not_silent(
    gmail: GmailDouble, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    gmail.add("1", "2", "3")
    monkeypatch.setattr(page_tokens, "PAGE_SECONDS", 0.0)
    cursor = {"history": "100", "page": "2"}
    found = await pages(source(gmail, fetcher), cursor)
    assert [(len(page.items), page.cursor == cursor) for page in found] == [(1, True), *[(0, True)] * 3, (0, False)]


async def test_a_page_that_is_no_longer_known_begins_the_listing_again(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1", "2", "3")
    gmail.on(f"{ME}/messages?maxResults=500&pageToken=2", Reply(b"{}", 400), gmail.with_token(gmail._list))
    again = await pages(source(gmail, fetcher), {"history": "90", "page": "2"})
    assert ids(again) == ["1", "2", "3"]
    assert again[-1].cursor == {"history": "90"}


async def test_only_changes_are_fetched_afterwards(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1", "2", "3")
    gmail.add("4")
    gmail.history = [
        record(101, messagesAdded="4"),
        record(102, messagesDeleted="1"),
        record(103, labelsAdded="2"),
        record(104, messagesAdded="1"),
    ]
    gmail.remove("1")
    found = await pages(source(gmail, fetcher), {"history": "100"})
    assert ids(found) == ["4", "2"]
    assert set(removed(found)) == {"1"}
    assert found[-1].cursor == {"history": "104"}
    assert [page.cursor for page in found[:-1]] == [{"history": "100"}] * (len(found) - 1)
    assert f"{ME}/messages/3" not in gmail.paths
    asked = gmail.asked_for(f"{ME}/history")[0]
    assert asked.query["startHistoryId"] == "100"
    assert await pages(source(gmail, fetcher), {"history": "104"}) == []


async def test_mails_that_go_to_the_bin_are_removed(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1", labels=("TRASH",))
    gmail.history = [record(101, labelsAdded="1")]
    found = await pages(source(gmail, fetcher), {"history": "100"})
    assert ids(found) == []
    assert removed(found) == ["1"]


async def test_changes_that_a_query_does_not_match_are_left_out(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1", labels=("Label_7",))
    gmail.add("2", labels=("INBOX",))
    gmail.history = [record(101, messagesAdded="1"), record(102, messagesAdded="2")]
    found = await pages(source(gmail, fetcher, query="Label_7"), {"history": "100"})
    assert ids(found) == ["1"]
    assert removed(found) == ["2"]


async def test_a_history_that_is_forgotten_means_reading_all_again(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.oldest_point = 50
    gmail.add("1", "2")
    found = await pages(source(gmail, fetcher), {"history": "7"})
    assert ids(found) == ["1", "2"]
    assert found[-1].listed == frozenset("12")
    assert found[-1].cursor == {"history": "100"}


async def test_a_mail_that_vanishes_between_list_and_fetch_is_removed(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1", "2")
    gmail.on(f"{ME}/messages/2", json_reply({"error": {"code": 404}}, 404))
    found = await pages(source(gmail, fetcher))
    assert ids(found) == ["1"]
    assert removed(found) == ["2"]


async def test_a_token_is_asked_for_once_and_renewed_when_it_is_refused(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add(*map(str, range(1, 9)))
    gmail.page_size = 8
    reader = source(gmail, fetcher)
    await pages(reader)
    assert len(gmail.asked_for("/token")) == 1
    gmail.tokens.append("second")
    assert len(ids(await pages(reader))) == 8
    assert len(gmail.asked_for("/token")) == 2


async def test_a_token_that_expires_is_renewed_before_it_is_refused(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.on("/token", json_reply({"access_token": "first", "expires_in": 1}))
    gmail.add("1")
    assert ids(await pages(source(gmail, fetcher))) == ["1"]
    assert not any(request for request in gmail.requests if request.headers.get("authorization") == "Bearer ")
    assert len(gmail.asked_for("/token")) > 1


async def test_a_consent_that_was_withdrawn_is_explained(gmail: GmailDouble, fetcher: Fetcher) -> None:
    with pytest.raises(SourceError, match="gives no access: it answered 400") as caught:
        await pages(source(gmail, fetcher, refresh_token="canary-old"))
    assert "sign in again" in caught.value.hint
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__!r}"


async def test_a_token_that_is_refused_twice_is_an_error(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.on(f"{ME}/labels", UNAUTHORIZED)
    with pytest.raises(FetchError, match="answered 401"):
        await pages(source(gmail, fetcher))


async def test_troubles_that_pass_are_waited_for(gmail: GmailDouble, fetcher: Fetcher, waits: list[float]) -> None:
    gmail.add("1")
    gmail.on(f"{ME}/messages/1", BUSY, Reply(b"", 503), gmail.with_token(gmail._message))
    assert ids(await pages(source(gmail, fetcher))) == ["1"]
    assert waits[0] == 7
    assert len(waits) == 2


@pytest.mark.parametrize(
    ("path", "reply"),
    [
        ("/labels", Reply(b'{"labels": [{"id": "INB')),
        ("/labels", Reply(b"[]")),
        ("/labels", json_reply({"labels": {"id": "INBOX"}})),
        ("/profile", json_reply({"emailAddress": "a@x.example"})),
        ("/messages", Reply(b"<html>Sign in</html>")),
        ("/messages", json_reply({"messages": [{"threadId": "t"}]})),
        ("/messages/1", json_reply({"id": "1", "threadId": "t1"})),
        ("/messages/1", Reply(b'{"raw": "abc', cut=True)),
        ("/messages/1", Reply(b"", 500)),
        ("/messages/1", json_reply({"error": {"code": 403, "status": "PERMISSION_DENIED"}}, 403)),
        ("/profile", Reply(b"[" * 100_000)),
    ],
)
async def test_answers_that_are_cut_or_of_another_form_fail_the_run(
    gmail: GmailDouble, fetcher: Fetcher, path: str, reply: Reply
) -> None:
    gmail.add("1")
    gmail.on(f"{ME}{path}", reply)
    with pytest.raises(FetchError):
        await pages(source(gmail, fetcher))


async def test_one_mail_that_cannot_be_decoded_does_not_stop_the_others(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1", "2")
    gmail.on(f"{ME}/messages/1", json_reply({"id": "1", "threadId": "t", "raw": "%%%"}))
    found = await pages(source(gmail, fetcher))
    assert ids(found) == ["2"]
    assert found[0].items[0] == Failure("gmail:1", "parse_failed", "gmail:1 is not encoded as Gmail documents it")


@pytest.mark.parametrize("size", [1_200_000, 4_000_000])
async def test_a_mail_that_is_too_large_is_reported(gmail: GmailDouble, fetcher: Fetcher, size: int) -> None:
    gmail.add("1", "2")

    def large(request: Request) -> Reply:
        if request.query["format"] == "MINIMAL":
            return json_reply({"id": "1", "sizeEstimate": size})
        return json_reply({"id": "1", "threadId": "t1", "raw": base64.urlsafe_b64encode(b"x" * size).decode()})

    gmail.on(f"{ME}/messages/1", large)
    found = await pages(source(gmail, fetcher))
    assert ids(found) == ["2"]
    failure = found[0].items[0]
    assert isinstance(failure, Failure)
    assert (failure.uri, failure.code) == ("gmail:1", "too_large")
    gmail.requests.clear()
    again = await pages(source(gmail, fetcher), found[-1].cursor)
    assert [page.items for page in again] == [(failure,)]
    assert again[-1].cursor == found[-1].cursor
    assert [one.query["format"] for one in gmail.asked_for(f"{ME}/messages/1")] == ["MINIMAL"]
    gmail.add("1")
    assert ids(allowed := await pages(source(gmail, fetcher), again[-1].cursor)) == ["1"]
    assert allowed[-1].cursor == {"history": "100"}


@pytest.mark.parametrize("kind", ["messagesDeleted", "labelsRemoved"])
async def test_a_mail_that_could_not_be_had_and_is_gone_is_named_no_more(
    gmail: GmailDouble, fetcher: Fetcher, kind: str
) -> None:
    gmail.add("1", "2", labels=("INBOX",))
    gmail.history = [record(101, **{kind: "1"})]
    cursor = {"history": "100", "unread": ["1"]}
    found = await pages(source(gmail, fetcher, query="Label_7"), cursor)
    assert [page.items for page in found if page.items] == []
    assert found[-1].removed == ("1",)
    assert found[-1].cursor == {"history": "101"}


async def test_a_mail_that_cannot_be_had_is_asked_for_once_a_run(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1")
    gmail.on(f"{ME}/messages/1", json_reply({"id": "1", "threadId": "t", "raw": "%%%"}))
    gmail.history = [record(101, labelsAdded="1")]
    found = await pages(source(gmail, fetcher), {"history": "100", "unread": ["1"]})
    assert [entry.uri for page in found for entry in page.items] == ["gmail:1"]
    assert found[-1].cursor == {"history": "101", "unread": ["1"]}


@pytest.mark.parametrize(
    ("path", "cursor", "query"),
    [("/messages", None, ""), ("/history", {"history": "100"}, ""), ("/messages", {"history": "100"}, "INBOX")],
    ids=["all mail", "changes", "what a query matches"],
)
async def test_a_listing_that_leads_back_to_itself_is_an_error(
    gmail: GmailDouble, fetcher: Fetcher, path: str, cursor: Any, query: str
) -> None:
    gmail.add("1")
    gmail.history = [record(101, messagesAdded="1")]
    gmail.on(f"{ME}{path}", json_reply({"historyId": "101", "nextPageToken": "again"}))
    async with asyncio.timeout(240):
        with pytest.raises(SourceError, match="Gmail lists in a circle"):
            await pages(source(gmail, fetcher, query=query), cursor)
    assert len(gmail.asked_for(f"{ME}{path}")) == 2


async def test_a_listing_that_always_goes_on_comes_to_an_end(
    gmail: GmailDouble, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(request: Request) -> Reply:
        return json_reply({"nextPageToken": request.query.get("pageToken", "") + "x"})

    monkeypatch.setattr(page_tokens, "MAX_PAGES", 3)
    gmail.on(f"{ME}/messages", another)
    async with asyncio.timeout(240):
        with pytest.raises(SourceError, match="Gmail lists more than 3 pages"):
            await pages(source(gmail, fetcher))
    assert len(gmail.asked_for(f"{ME}/messages")) == 4


async def test_a_mail_that_fails_ends_the_requests_beside_it(gmail: GmailDouble, fetcher: Fetcher) -> None:
    gmail.add("1", "2")
    over = threading.Event()

    def never(request: Request) -> Reply:
        over.wait(240)
        return json_reply({})

    gmail.on(f"{ME}/messages/1", json_reply({"error": {"code": 403}}, 403))
    gmail.on(f"{ME}/messages/2", never)
    try:
        with pytest.raises(FetchError, match="answered 403"):
            await pages(source(gmail, fetcher))
        assert asyncio.all_tasks() == {asyncio.current_task()}
    finally:
        over.set()
