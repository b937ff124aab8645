"""Requests that fail: which are repeated, how long is waited, and what is raised."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator

import pytest
from tests.doubles.web import Reply, WebDouble, json_reply, redirect

from ragstone import Question, SearchQuery
from ragstone.client import connection
from ragstone.client.client import AsyncClient
from ragstone.client.connection import Timeouts
from ragstone.core.errors import InputError, ModelUnavailable, QuotaExceeded, RagstoneError, RemoteError, StoreBusy

USAGE = {"documents": 3, "chunks": 5, "queued": {"documents": 1, "bytes": 9}, "cost_per_month": 0.5}
BUSY = {"code": "store_busy", "detail": "another process holds it", "hint": "try again", "request_id": "r1"}


@pytest.fixture(scope="module")
def server() -> Iterator[WebDouble]:
    with WebDouble() as double:
        yield double


@pytest.fixture
def web(server: WebDouble, monkeypatch: pytest.MonkeyPatch) -> WebDouble:
    monkeypatch.setattr(connection, "FIRST_WAIT", 0.0)
    server.requests.clear()
    return server


@pytest.fixture
def call(web: WebDouble) -> Callable[..., AsyncClient]:
    return lambda **options: AsyncClient(web.url(""), "rgs_x", **options)


@pytest.mark.parametrize(
    "failure",
    [
        json_reply(BUSY, 503),
        json_reply(BUSY, 503, Retry_After="0"),
        Reply(b"<html>bad gateway</html>", 502),
        Reply(status=504),
        Reply(reset=True),
        Reply(b"half of it", cut=True),
    ],
)
async def test_what_may_pass_is_repeated(web: WebDouble, call: Callable[..., AsyncClient], failure: Reply) -> None:
    web.on("/v1/usage", failure, failure, json_reply(USAGE))
    async with call() as client:
        usage = await client.usage()
    assert (usage.stock.documents, usage.queued.bytes, usage.cost, len(web.requests)) == (3, 9, 0.5, 3)


async def test_a_post_is_repeated_under_one_key(web: WebDouble, call: Callable[..., AsyncClient]) -> None:
    web.on("/v1/feedback", Reply(reset=True), json_reply({"noted": 1}, 201))
    async with call() as client:
        assert await client.feedback.vote("q", ["c"]) == 1
        assert await client.feedback.vote("q", ["c"]) == 1
    keys = [request.headers["idempotency-key"] for request in web.requests]
    assert (keys[0] == keys[1], keys[1] == keys[2]) == (True, False)


async def test_a_question_needs_no_key_unless_it_is_a_turn(web: WebDouble, call: Callable[..., AsyncClient]) -> None:
    """A key has the service store the reply: only what is to happen once is worth that."""
    answer = {"question": "q", "answer": "a", "status": "answered"}
    web.on("/v1/ask", Reply(reset=True), json_reply(answer))
    async with call() as client:
        assert (await client.ask("q")).answer == "a"
        assert (await client.ask(Question("q", conversation="c"))).answer == "a"
    assert ["idempotency-key" in request.headers for request in web.requests] == [False, False, True]


async def test_a_request_that_is_still_being_done_is_waited_for(
    web: WebDouble, call: Callable[..., AsyncClient]
) -> None:
    under_way = json_reply(
        {"code": "request_under_way", "detail": "the same request is being done"}, 409, Retry_After="0"
    )
    web.on("/v1/feedback", Reply(reset=True), under_way, json_reply({"noted": 1}, 201))
    async with call() as client:
        assert await client.feedback.vote("q", ["c"]) == 1


async def test_a_deletion_that_may_have_happened_is_not_repeated(
    web: WebDouble, call: Callable[..., AsyncClient]
) -> None:
    web.on("/v1/conversations/c1", Reply(reset=True))
    async with call() as client:
        with pytest.raises(RemoteError, match="broke off"):
            await client.conversations.forget("c1")
    assert len(web.requests) == 1


async def test_a_deletion_that_was_refused_is_repeated(web: WebDouble, call: Callable[..., AsyncClient]) -> None:
    problem = {"code": "quota_exceeded", "detail": "too many requests"}
    web.on("/v1/conversations/c1", json_reply(problem, 429, Retry_After="0"), json_reply({"turns": 2}))
    async with call() as client:
        assert await client.conversations.forget("c1") == 2


async def test_an_upload_is_sent_again_from_its_beginning(web: WebDouble, call: Callable[..., AsyncClient]) -> None:
    taken = {"document_id": "d", "status": "pending", "job": None}
    web.on("/v1/documents", Reply(status=503), json_reply(taken, 202))
    file = io.BytesIO(b"the whole body")
    async with call() as client:
        assert (await client.documents.upload(file, "a.md")).document_id == "d"
    assert [b"the whole body" in request.body for request in web.requests] == [True, True]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (json_reply({"code": "quota_exceeded", "detail": "no more documents"}, 429), QuotaExceeded),
        (json_reply({"code": "quota_exceeded", "detail": "later"}, 429, Retry_After="3600"), QuotaExceeded),
        (json_reply({"code": "model_unavailable", "detail": "not installed"}, 503), ModelUnavailable),
        (json_reply({"code": "invalid_input", "detail": "no"}, 422), InputError),
        (json_reply({"code": "new_code", "detail": "no"}, 418), InputError),
        (json_reply({"code": "internal", "detail": "the service failed"}, 500), RemoteError),
        (redirect("http://127.0.0.1:9/elsewhere"), RemoteError),
        (Reply(b"no JSON at all"), RemoteError),
    ],
)
async def test_the_rest_is_raised_at_once(
    web: WebDouble, call: Callable[..., AsyncClient], answer: Reply, kind: type[RagstoneError]
) -> None:
    web.on("/v1/usage", answer)
    async with call() as client:
        with pytest.raises(kind) as raised:
            await client.usage()
    assert (type(raised.value), len(web.requests)) == (kind, 1)
    assert raised.value.retry_after == (3600 if answer.headers.get("Retry-After") else None)


async def test_the_last_failure_is_raised(web: WebDouble, call: Callable[..., AsyncClient]) -> None:
    web.on("/v1/usage", json_reply(BUSY, 503, Retry_After="0"))
    async with call(retries=1) as client:
        with pytest.raises(StoreBusy) as raised:
            await client.usage()
    error = raised.value
    assert (str(error), error.hint, error.request_id) == ("another process holds it", "try again", "r1")
    assert (error.retry_after, error.retryable, len(web.requests)) == (0.0, True, 2)


async def test_a_service_that_hangs_is_given_up(web: WebDouble, call: Callable[..., AsyncClient]) -> None:
    web.on("/v1/usage", Reply(hang=True))
    async with call(timeouts=Timeouts(read=0.05), retries=0) as client:
        with pytest.raises(RemoteError, match=r"sent nothing for 0\.05 s"):
            await client.usage()
    async with call(timeouts=Timeouts(total=0.05)) as client:
        with pytest.raises(RemoteError, match=r"did not answer within 0\.05 s"):
            await client.usage()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'event: sentence\ndata: {"text": "A.", "marked": "A. [1]", "support": "quoted", "citations": [1]}\n\n',
         "before its answer was complete"),
        (b'event: error\ndata: {"error": {"code": "store_busy", "message": "held"}}\n\n', "held"),
        (b"event: sentence\ndata: {broken\n\n", "broke off"),
    ],
)  # fmt: skip
async def test_a_stream_that_breaks_off_raises(
    web: WebDouble, call: Callable[..., AsyncClient], body: bytes, message: str
) -> None:
    web.on("/v1/ask", Reply(body, headers={"content-type": "text/event-stream"}))
    async with call() as client:
        with pytest.raises(RagstoneError, match=message):
            _ = [event async for event in client.stream("What?")]


async def test_a_name_stays_one_step_of_the_path(web: WebDouble, call: Callable[..., AsyncClient]) -> None:
    web.on("/v1/kbs/a%2F..%3Fb", json_reply({"kb": "a", "documents": 1}))
    async with call() as client:
        assert (await client.knowledge_bases.stats("a/..?b")).documents == 1


async def test_half_a_character_is_sent_as_a_question_mark(web: WebDouble, call: Callable[..., AsyncClient]) -> None:
    """The engine reads it so as well. File names that are no Unicode hold such halves."""
    web.on("/v1/search", json_reply({"query": "?"}))
    async with call() as client:
        await client.search("caf\udce9 ü")
    assert json.loads(web.requests[0].body) == {"query": "caf? ü"}


@pytest.mark.parametrize("value", [float("nan"), {1}])
async def test_a_value_that_json_does_not_have_is_not_sent(
    web: WebDouble, call: Callable[..., AsyncClient], value: object
) -> None:
    async with call() as client:
        with pytest.raises(InputError, match="is not JSON"):
            await client.search(SearchQuery("q", where={"a": value}))
        with pytest.raises(InputError, match="is not JSON"):
            await client.documents.list(where={"a": value})
        with pytest.raises(InputError, match="is not JSON"):
            await client.documents.upload(b"text", "a.md", metadata={"a": value})
    assert web.requests == []


async def test_a_key_is_read_without_the_line_around_it(web: WebDouble) -> None:
    web.on("/v1/usage", json_reply(USAGE))
    async with AsyncClient(web.url(""), " rgs_x\n") as client:
        await client.usage()
    assert web.requests[0].headers["authorization"] == "Bearer rgs_x"
    with pytest.raises(InputError, match="no key has") as refused:
        AsyncClient(web.url(""), "rgs_é")
    assert "é" not in str(refused.value)
