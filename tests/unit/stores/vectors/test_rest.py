"""Calls to a vector database over HTTP: what is tried again, what is told, and what is not."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.doubles.rest import RestDouble
from tests.doubles.web import Reply, json_reply

from ragstone.core.errors import InputError, SettingsError, StoreBusy, StoreError
from ragstone.fetch.calls import host_of
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import unit
from ragstone.stores.vectors.rest import Account, RestService, first_message, numbers, service_url

SECRET = "canary-key-1234"


@pytest.fixture
def server() -> Iterator[RestDouble]:
    with RestDouble(lambda request: json_reply({"path": request.path})) as double:
        yield double


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def service(waits: list[float]) -> RestService:
    return make_service(waits)


def make_service(waits: list[float], timeout: float = 30.0) -> RestService:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    headers = {"Api-Key": SECRET}
    return RestService(Account("engine", headers, SECRET, timeout, "check the key", "check the url"), sleep=sleep)


async def call(service: RestService, server: RestDouble, **given: Any) -> Any:
    try:
        return await service.call("POST", f"http://{server.host}/x", {"a": "é"}, **given)
    finally:
        await service.close()


async def test_a_call_sends_its_headers_and_compact_json(service: RestService, server: RestDouble) -> None:
    answer = await call(service, server, query={"ids": ["1", "2"]})
    (request,) = server.requests
    assert answer.body == {"path": "/x"}
    assert (request.method, request.query) == ("POST", {"ids": "1,2"})
    assert request.headers["api-key"] == SECRET
    assert request.headers["content-type"] == "application/json"
    assert request.body == '{"a":"é"}'.encode()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_what_passes_is_tried_again(
    service: RestService, server: RestDouble, waits: list[float], status: int
) -> None:
    server.faults.extend([json_reply({}, status), json_reply({}, status, retry_after="7")])
    assert (await call(service, server)).body == {"path": "/x"}
    assert waits == [0.5, 7.0]


async def test_the_third_failure_is_told(service: RestService, server: RestDouble, waits: list[float]) -> None:
    server.faults.extend([json_reply({"error": {"message": "too\n busy"}}, 503)] * 3)
    with pytest.raises(StoreBusy, match=r"^engine at 127\.0\.0\.1:\d+ failed \(503\): too busy$") as raised:
        await call(service, server)
    assert raised.value.retryable
    assert len(server.requests) == 3
    assert len(waits) == 2


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_told_once_without_it(service: RestService, server: RestDouble, status: int) -> None:
    server.faults.append(json_reply({"message": f"key {SECRET} is unknown"}, status))
    with pytest.raises(StoreError, match=r"refused the API key \(40\d\): key \*\*\* is unknown") as raised:
        await call(service, server)
    assert raised.value.hint == "check the key"
    assert not isinstance(raised.value, StoreBusy)
    assert len(server.requests) == 1
    assert SECRET not in repr(raised.value)


async def test_a_refusal_that_is_expected_is_an_answer(service: RestService, server: RestDouble) -> None:
    server.faults.append(Reply(b"not json", 404))
    answer = await call(service, server, expect={404})
    assert (answer.status, answer.body) == (404, None)


async def test_another_refusal_is_told_once(service: RestService, server: RestDouble) -> None:
    server.faults.append(json_reply({"error": [{"message": "x" * 1000}]}, 422))
    with pytest.raises(StoreError, match=r"failed \(422\): x{200}$"):
        await call(service, server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b'{"a":'])
async def test_an_answer_that_is_not_json_is_told(service: RestService, server: RestDouble, body: bytes) -> None:
    server.faults.append(Reply(body))
    with pytest.raises(StoreError, match="not JSON"):
        await call(service, server)


async def test_a_silent_server_is_given_up(waits: list[float], server: RestDouble) -> None:
    server.faults.extend([Reply(hang=True)] * 3)
    with pytest.raises(StoreBusy, match=r"did not answer within 0\.05 s") as raised:
        await call(make_service(waits, 0.05), server)
    assert "timeout" in raised.value.hint
    assert len(waits) == 2


async def test_an_answer_that_breaks_off_is_tried_again(service: RestService, server: RestDouble) -> None:
    server.faults.append(Reply(b'{"path": "cut"}', cut=True))
    assert (await call(service, server)).body == {"path": "/x"}


async def test_a_server_that_is_not_there_is_told_without_credentials(service: RestService) -> None:
    with pytest.raises(StoreBusy, match=r"^engine at 127\.0\.0\.1:9 cannot be reached$") as raised:
        await service.call("GET", f"http://user:{SECRET}@127.0.0.1:9/v1?key={SECRET}")
    assert raised.value.hint == "check the url"


def test_another_loop_and_another_process_get_their_own_connections(server: RestDouble) -> None:
    service = make_service([])
    url = f"http://{server.host}/x"
    for _ in range(2):
        with asyncio.Runner() as runner:
            assert runner.run(service.call("GET", url)).status == 200
            child = multiprocessing.get_context("fork").Process(target=_call_and_close, args=(service, url))
            child.start()
            child.join(60)
            assert child.exitcode == 0
            assert runner.run(service.call("GET", url)).status == 200
            runner.run(service.close())


def _call_and_close(service: RestService, url: str) -> None:
    async def both() -> None:
        assert (await service.call("GET", url)).status == 200
        await service.close()

    asyncio.run(both())


async def test_an_answer_of_another_shape_is_the_services_failure(service: RestService) -> None:
    shape = "engine at h:1 sent an answer of another shape"
    with pytest.raises(StoreError, match=shape), service.reading("http://h:1/x"):
        json.loads("{}")["missing"]


@pytest.mark.parametrize(
    "adapter",
    [
        Adapter(kind="e"),
        Adapter(kind="e", url="localhost:8080"),
        Adapter(kind="e", url="ftp://h"),
        Adapter(kind="e", url="http://"),
        Adapter(kind="e", url="http://h:99999"),
        Adapter(kind="e", url="http://[::1"),
        Adapter.model_validate({"kind": "e", "url": "http://h", "dsn": "x"}),
        Adapter.model_validate({"kind": "e", "url": "http://h", "path": "/x"}),
    ],
)
def test_an_address_that_is_none_is_refused(adapter: Adapter) -> None:
    with pytest.raises(SettingsError):
        service_url(adapter)


def test_addresses_are_kept_without_a_slash_and_shown_without_secrets() -> None:
    assert service_url(Adapter(kind="e", url="https://h:1/base/")) == "https://h:1/base"
    assert service_url(Adapter(kind="e"), "https://d") == "https://d"
    assert host_of("https://user:pass@h:1/base?key=1") == "h:1"


@pytest.mark.parametrize(
    "said", [{"message": "m"}, {"error": "m"}, {"error": {"code": 1, "message": "m"}}, {"error": [{"message": "m"}]}]
)
def test_the_message_is_found_however_it_is_wrapped(said: Any) -> None:
    assert first_message(said) == "m"


@pytest.mark.parametrize("said", [None, [], {}, {"error": None}, {"error": []}, {"message": 1}, 5])
def test_no_message_is_no_message(said: Any) -> None:
    assert first_message(said) == ""


def test_vectors_are_sent_at_length_one_and_in_few_digits() -> None:
    sent = numbers(unit(np.array([3, 4, 0], np.float32)))
    assert json.dumps(sent) == "[0.600000024, 0.800000012, 0.0]"
    assert np.array_equal(np.array(sent, np.float32), np.array([0.6, 0.8, 0], np.float32))


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_refused(odd: float) -> None:
    with pytest.raises(InputError, match="chunk 1"):
        unit(np.array([1, odd], np.float32), "chunk 1")
