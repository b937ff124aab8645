from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.doubles.rest import RestDouble
from tests.doubles.web import Reply, json_reply

from ragstone.core.errors import RateLimited, RemoteError
from ragstone.settings.web import WebSettings
from ragstone.websearch import service
from ragstone.websearch.service import SearchService

SECRET = "k-secret"


@pytest.fixture
def double() -> Iterator[RestDouble]:
    with RestDouble(lambda _: json_reply({"fine": True})) as double:
        yield double


class Naps:
    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
async def calling(double: RestDouble, naps: Naps) -> AsyncIterator[SearchService]:
    settings = WebSettings(timeout=5, retries=2)
    address = f"http://user:{SECRET}@{double.host}/search?token={SECRET}"
    made = SearchService("Engine", address, settings, {"x-key": SECRET}, sleep=naps)
    yield made
    await made.close()


@pytest.mark.parametrize("status", [408, 500, 503])
async def test_what_passes_is_tried_again(double: RestDouble, calling: SearchService, naps: Naps, status: int) -> None:
    double.faults.extend([Reply(b"oops", status)] * 2)
    assert await calling.get({"q": "x"}) == {"fine": True}
    assert (len(double.requests), naps.taken) == (3, [0.5, 1.0])


async def test_the_budget_of_retries_ends(double: RestDouble, calling: SearchService) -> None:
    double.faults.extend([Reply(b"oops", 503)] * 9)
    with pytest.raises(RemoteError, match=r"failed \(503\)$"):
        await calling.get({"q": "x"})
    assert len(double.requests) == 3


@pytest.mark.parametrize("status", [429, 432, 433])
@pytest.mark.req("R-REL-05")
async def test_a_limit_is_not_tried_again(double: RestDouble, calling: SearchService, status: int) -> None:
    double.faults.append(Reply(b"slow down", status, {"retry-after": "9"}))
    with pytest.raises(RateLimited, match=rf"^Engine at 127\.0\.0\.1:\d+ is limiting requests \({status}\)$"):
        await calling.get({"q": "x"})
    assert len(double.requests) == 1


async def test_a_quota_of_google_is_a_limit(double: RestDouble, calling: SearchService) -> None:
    double.faults.append(json_reply({"error": {"errors": [{"reason": "dailyLimitExceeded"}]}}, 403))
    with pytest.raises(RateLimited):
        await calling.get({"q": "x"})


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(SECRET.encode(), 401), "refused the request (401)"),
        (Reply(SECRET.encode(), 403), "refused the request (403)"),
        (Reply(b"", 404), "failed (404)"),
        (Reply(b"", 302, {"location": "http://127.0.0.1:1/"}), "failed (302)"),
        (Reply(b"x" * (service.MOST_BYTES + 1)), "sent far too much"),
    ],
)
async def test_what_stays_is_told_at_once_and_without_the_key(
    double: RestDouble, calling: SearchService, reply: Reply, message: str
) -> None:
    double.faults.append(reply)
    with pytest.raises(RemoteError) as caught:
        await calling.get({"q": "x"})
    assert str(caught.value) == f"Engine at {double.host} {message}"
    assert SECRET not in str(caught.value) + caught.value.hint
    assert not caught.value.retryable
    assert len(double.requests) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"\xff"])
async def test_what_is_not_json(double: RestDouble, calling: SearchService, body: bytes) -> None:
    double.faults.extend([Reply(body)] * 3)
    with pytest.raises(RemoteError, match=r"sent an answer that is not JSON$"):
        await calling.get({"q": "x"})


async def test_one_that_never_answers_is_given_up_at_the_timeout(double: RestDouble) -> None:
    double.faults.extend([Reply(hang=True)] * 3)
    waiting = SearchService("Engine", f"http://{double.host}", WebSettings(timeout=0.05, retries=5))
    with pytest.raises(RemoteError, match=r"did not answer within 0\.05 s$") as caught:
        await waiting.get({"q": "x"})
    assert caught.value.hint == "raise web.timeout"
    await waiting.close()


async def test_nobody_there(calling: SearchService) -> None:
    alone = SearchService("Engine", "http://127.0.0.1:1", WebSettings(retries=0))
    with pytest.raises(RemoteError, match=r"^Engine at 127\.0\.0\.1:1 cannot be reached$"):
        await alone.post({"q": "x"})
    await alone.close()


@pytest.mark.parametrize("reply", [{}, [], None, {"results": 3}, {"results": [None]}, {"results": ["x"]}])
def test_an_answer_of_another_shape(reply: Any) -> None:
    reading = SearchService("Engine", "http://127.0.0.1:1", WebSettings()).reading
    with pytest.raises(RemoteError, match="of another shape"), reading():
        [one["title"] for one in reply["results"]]
