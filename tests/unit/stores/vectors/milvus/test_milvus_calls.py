"""Failures of a Milvus server come in our own words: against a server on loopback that fails as it is told."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from pydantic import SecretStr
from pymilvus.grpc_gen import common_pb2, milvus_pb2, milvus_pb2_grpc

from ragstone.core.errors import SettingsError, StoreBusy, StoreError, StoreFull
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.milvus.provider import MilvusProvider

KEY = "root:M1lvus-key"
Fails = Callable[[grpc.ServicerContext], common_pb2.Status]


class Failing(milvus_pb2_grpc.MilvusServiceServicer):  # type: ignore[misc]
    """Greets everybody and answers the question for its version with what the test put in its list."""

    def __init__(self) -> None:
        self.answers: list[Fails] = []
        self.asked = 0

    def Connect(self, request: Any, context: grpc.ServicerContext) -> Any:
        return milvus_pb2.ConnectResponse(status=common_pb2.Status(), identifier=1)

    def GetVersion(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return milvus_pb2.GetVersionResponse(status=answer(context), version="v9")


@pytest.fixture
def double() -> Iterator[tuple[Failing, str]]:
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool)
        failing = Failing()
        milvus_pb2_grpc.add_MilvusServiceServicer_to_server(failing, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield failing, f"http://127.0.0.1:{port}"
        server.stop(grace=None).wait()


def aborts(status: grpc.StatusCode, details: str = "") -> Fails:
    return lambda context: context.abort(status, details)


def says(code: int, reason: str, *, retriable: bool = False) -> Fails:
    return lambda context: common_pb2.Status(code=code, reason=reason, retriable=retriable)


def works(context: grpc.ServicerContext) -> common_pb2.Status:
    return common_pb2.Status()


def provider_for(url: str, **options: Any) -> MilvusProvider:
    adapter = Adapter(kind="milvus", url=url, api_key=SecretStr(KEY), options={"timeout": 2, **options})
    return MilvusProvider(adapter, Path("unused"), "filter")


async def failure(double: tuple[Failing, str], answer: Fails, **options: Any) -> StoreError:
    failing, url = double
    failing.answers = [answer]
    provider = provider_for(url, **options)
    with pytest.raises(StoreError) as caught:
        await provider.health()
    await provider.close()
    assert url in str(caught.value)
    assert caught.value.hint
    assert "M1lvus" not in f"{caught.value} {caught.value.hint} {provider._calls!r}"
    return caught.value


@pytest.mark.parametrize("status", [grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED])
async def test_a_key_that_is_refused_is_not_tried_again(double: tuple[Failing, str], status: grpc.StatusCode) -> None:
    error = await failure(double, aborts(status, f"auth check failure for {KEY}"))
    assert type(error) is StoreError
    assert "api_key" in error.hint
    assert double[0].asked == 1


async def test_the_key_is_not_repeated_from_what_a_server_says(double: tuple[Failing, str]) -> None:
    coded = base64.b64encode(KEY.encode()).decode()
    error = await failure(double, says(65535, f"cannot use {KEY} nor {coded}\nfor   this"))
    assert type(error) is StoreError
    assert "cannot use *** nor *** for this" in str(error)
    assert coded not in str(error)


async def test_a_disk_that_is_full_is_said_to_be(double: tuple[Failing, str]) -> None:
    error = await failure(double, says(65535, "write rocksmq: No space left on device"))
    assert isinstance(error, StoreFull)


@pytest.mark.parametrize(
    "answer", [says(5, "node is starting", retriable=True), aborts(grpc.StatusCode.RESOURCE_EXHAUSTED, "slow")]
)
async def test_what_may_pass_is_tried_three_times(double: tuple[Failing, str], answer: Fails) -> None:
    error = await failure(double, answer, timeout=20)
    assert isinstance(error, StoreBusy)
    assert double[0].asked == 3


async def test_what_has_passed_is_no_failure(double: tuple[Failing, str]) -> None:
    failing, url = double
    failing.answers = [says(5, "node is starting", retriable=True), works]
    provider = provider_for(url)
    assert (await provider.health()).version == "v9"
    await provider.close()


async def test_a_server_that_is_away_is_waited_for_no_longer_than_set(double: tuple[Failing, str]) -> None:
    error = await failure(double, aborts(grpc.StatusCode.UNAVAILABLE, "gone"), timeout=0.5)
    assert isinstance(error, StoreBusy)
    assert "store.vectors.url" in error.hint


async def test_a_server_that_never_answers_is_given_up(double: tuple[Failing, str]) -> None:
    ended = threading.Event()

    def hangs(context: grpc.ServicerContext) -> common_pb2.Status:
        context.add_callback(ended.set)
        ended.wait(60)
        return common_pb2.Status()

    error = await failure(double, hangs, timeout=0.5)
    assert isinstance(error, StoreBusy)


async def test_an_address_where_nothing_listens_fails_at_once() -> None:
    provider = provider_for("http://user:M1lvus@127.0.0.1:1")
    with pytest.raises(StoreBusy, match=r"Milvus at http://127\.0\.0\.1:1 does not answer") as caught:
        await provider.health()
    assert "store.vectors.url" in caught.value.hint
    await provider.close()


async def test_a_provider_that_was_closed_stays_closed(double: tuple[Failing, str]) -> None:
    failing, url = double
    failing.answers = [works]
    provider = provider_for(url)
    before = set(threading.enumerate())
    await provider.health()
    await provider.close()
    await provider.close()
    assert not [one for one in set(threading.enumerate()) - before if one.name.startswith("milvus")]
    with pytest.raises(StoreError, match="was closed"):
        await provider.health()


def test_the_key_is_in_no_representation() -> None:
    provider = provider_for("http://127.0.0.1:1")
    assert "M1lvus" not in f"{provider!r} {provider._calls!r}"
    with pytest.raises(SettingsError) as caught:
        provider_for("http://127.0.0.1:1", unknown=1)
    assert "M1lvus" not in str(caught.value)
