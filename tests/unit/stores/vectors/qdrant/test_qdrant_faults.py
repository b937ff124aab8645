"""Qdrant on a server that is down, slow, busy, strange or somebody else's."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest
from tests.doubles.qdrant import QdrantDouble, error_reply
from tests.doubles.web import Reply, json_reply
from tests.unit.stores.vectors.qdrant.served import KEY, PLACE, QUERY, Connect, Naps

from ragstone.core.errors import StoreBusy, StoreError
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import id_of, make_points


def refused_words(error: StoreError, url: str) -> str:
    words = f"{error} {error.hint} {error!r}"
    assert url in words
    assert KEY not in words
    assert error.hint
    return words


@pytest.mark.parametrize(
    "reply",
    [
        error_reply("Service unavailable", 503, retry_after="3"),
        error_reply("Too many requests", 429, retry_after="3"),
        Reply(status=502, headers={"retry-after": "3"}),
    ],
)
async def test_a_busy_server_is_asked_again_when_it_said(
    provider: QdrantProvider, double: QdrantDouble, naps: Naps, reply: Reply
) -> None:
    double.faults += [reply, reply]
    await provider.upsert(PLACE, make_points(unit_vectors(1, seed=3), first=9))
    assert naps == [3, 3]
    assert await provider.count(PLACE) == 6


@pytest.mark.parametrize(
    "reply",
    [
        error_reply("slow down", 429),
        error_reply("slow down", 429, retry_after="tomorrow"),
        Reply(b'{"result": {}}', cut=True),
    ],
)
async def test_without_a_word_from_the_server_the_wait_doubles(
    provider: QdrantProvider, double: QdrantDouble, naps: Naps, reply: Reply
) -> None:
    double.faults += [reply, reply, reply]
    with pytest.raises(StoreBusy) as refused:
        await provider.delete(PLACE, [id_of(0)])
    refused_words(refused.value, double.url)
    assert refused.value.retryable
    assert naps == [0.5, 1.0]


async def test_a_search_does_not_outwait_its_time(provider: QdrantProvider, double: QdrantDouble, naps: Naps) -> None:
    double.faults += [error_reply("later", 503, retry_after="30")]
    with pytest.raises(StoreBusy, match="503"):
        await provider.search(PLACE, QUERY, 3)
    assert naps == []


async def test_a_server_that_says_nothing_is_given_up(double: QdrantDouble, connect: Connect) -> None:
    provider = connect(timeout=0.05)
    double.faults += [Reply(hang=True)] * 3
    with pytest.raises(StoreBusy, match=r"did not answer within 0\.05 s") as refused:
        await provider.search(PLACE, QUERY, 3)
    assert "timeout" in refused.value.hint
    with pytest.raises(StoreBusy, match=r"did not answer within 0\.05 s"):
        await provider.upsert(PLACE, make_points(unit_vectors(1)))


async def test_an_answer_in_drops_is_given_up(connect: Connect) -> None:
    hung_up, gone = asyncio.Event(), asyncio.Event()

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        while not hung_up.is_set():
            writer.write(b" ")
            with suppress(TimeoutError):
                await asyncio.wait_for(hung_up.wait(), 0.01)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        provider = connect(url=f"http://{host}:{port}", timeout=0.1)
        with pytest.raises(StoreBusy, match="did not answer"):
            await provider.count(PLACE)
        hung_up.set()
        await gone.wait()


async def test_nobody_at_the_address(connect: Connect) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        provider = connect(url=url)
        with pytest.raises(StoreBusy, match="cannot be reached") as refused:
            await provider.health()
        assert "store.vectors.url" in refused_words(refused.value, url)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_refused_is_not_tried_again(
    provider: QdrantProvider, double: QdrantDouble, naps: Naps, status: int
) -> None:
    double.faults += [Reply(f"Invalid API key {KEY}".encode(), status)]
    with pytest.raises(StoreError, match="refused the api_key") as refused:
        await provider.search(PLACE, QUERY, 3)
    assert "store.vectors.api_key" in refused_words(refused.value, double.url)
    assert naps == []


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"<html>not found</html>", 404),
        json_reply({"error": "not found"}, 404),
        Reply(status=301, headers={"location": "http://127.0.0.1:1/"}),
        Reply(b"<html>welcome</html>"),
        Reply(b'{"result": {"po'),
        json_reply({"result": 7}),
        json_reply([]),
        Reply(b"[" * 100_000),
        json_reply({"result": {"points": [{"id": 1, "score": "high"}]}}),
    ],
)
async def test_another_server_is_no_empty_collection(
    provider: QdrantProvider, double: QdrantDouble, reply: Reply
) -> None:
    double.faults += [reply]
    with pytest.raises(StoreError, match="as a Qdrant server does not") as refused:
        await provider.search(PLACE, QUERY, 3)
    refused_words(refused.value, double.url)


async def test_a_request_that_is_refused_quotes_nobody(provider: QdrantProvider, double: QdrantDouble) -> None:
    double.faults += [error_reply(f"Forbidden: {KEY}", 400)]
    with pytest.raises(StoreError, match="refused the request") as refused:
        await provider.count(PLACE)
    refused_words(refused.value, double.url)


async def test_a_write_that_is_not_done_yet_is_none(provider: QdrantProvider, double: QdrantDouble) -> None:
    double.faults += [json_reply({"result": {"operation_id": 1, "status": "acknowledged"}, "status": "ok"})]
    with pytest.raises(StoreBusy, match="not made it yet"):
        await provider.upsert(PLACE, make_points(unit_vectors(1)))
