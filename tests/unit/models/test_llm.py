from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest
from tests.doubles.openai import OpenAIDouble, Reply, chat_reply, json_reply, stream_reply

from ragstone.core.errors import RemoteError
from ragstone.core.model_types import Message, collect_costs
from ragstone.models.llm.client import OpenAILLM
from ragstone.settings.tree import LLMSettings, RemoteModel

TALK = [Message("system", "Be brief."), Message("user", "Why?")]


async def no_wait(_: float) -> None:
    return None


@pytest.fixture
def service() -> Iterator[OpenAIDouble]:
    with OpenAIDouble(lambda _: chat_reply("Because.")) as double:
        yield double


@pytest.fixture
def llm(service: OpenAIDouble) -> OpenAILLM:
    return OpenAILLM("small", LLMSettings(base_url=service.url, timeout=5, retries=1), sleep=no_wait)


async def test_it_replies(service: OpenAIDouble, llm: OpenAILLM) -> None:
    assert await llm.complete(TALK, max_tokens=50, seconds=5) == "Because."
    (request,) = service.requests
    assert request.path == "/v1/chat/completions"
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    assert request.body == {"model": "small", "messages": turns, "max_tokens": 50}
    assert llm.name == "small"
    await llm.close()


def test_openai_calls_the_limit_by_its_new_name() -> None:
    llm = OpenAILLM("gpt", RemoteModel(api_key="k"))
    assert llm._arguments(TALK, 9)["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (json_reply({}, 500), r"failed \(500\)"),
        (json_reply({}, 429), "is limiting requests"),
        (json_reply({}, 401), "refused the API key"),
        (json_reply({}, 404), "does not know the model"),
        (Reply(b'{"choices": [{"mess'), "cannot be read"),
        (json_reply({"choices": []}), "cannot be read"),
        (json_reply({"unexpected": True}), "cannot be read"),
        (Reply(b"<html>busy</html>", headers={"content-type": "text/html"}), "cannot be read"),
        (chat_reply(None), "cannot be read"),
        (chat_reply("  "), "cannot be read"),
        (chat_reply("Because of th", "length"), "was cut off after 50 tokens"),
        (Reply(b'{"choices": "and so on"}', cut=True), "cannot be reached"),
    ],
    ids=[
        "500", "429", "401", "404", "truncated", "no choice", "schema", "html", "null", "blank", "length", "cut",
    ],
)  # fmt: skip
async def test_no_usable_reply_is_a_typed_error(
    service: OpenAIDouble, llm: OpenAILLM, fault: Reply, message: str
) -> None:
    service.script.extend([fault] * 2)
    with pytest.raises(RemoteError, match=message):
        await llm.complete(TALK, max_tokens=50, seconds=5)
    await llm.close()


async def test_a_passing_fault_is_tried_again(service: OpenAIDouble, llm: OpenAILLM) -> None:
    service.script.append(json_reply({}, 502))
    assert await llm.complete(TALK, max_tokens=50, seconds=5) == "Because."
    await llm.close()


async def test_the_deadline_covers_all_attempts(service: OpenAIDouble, llm: OpenAILLM) -> None:
    service.script.extend([Reply(hang=True)] * 2)
    with pytest.raises(RemoteError, match=r"did not answer within 0\.05 s"):
        await llm.complete(TALK, max_tokens=50, seconds=0.05)
    await llm.close()


async def test_the_deadline_covers_waiting_to_try_again(service: OpenAIDouble) -> None:
    async def for_ever(_: float) -> None:
        await asyncio.Event().wait()

    llm = OpenAILLM("small", RemoteModel(base_url=service.url), sleep=for_ever)
    service.script.append(json_reply({}, 429, retry_after="20"))
    with pytest.raises(RemoteError, match="did not answer within"):
        await llm.complete(TALK, max_tokens=50, seconds=0.2)
    await llm.close()


async def test_it_streams(service: OpenAIDouble, llm: OpenAILLM) -> None:
    service.script.append(stream_reply("Be", "cause", "."))
    parts = [part async for part in llm.stream(TALK, max_tokens=50, seconds=5)]
    assert parts == ["Be", "cause", "."]
    assert service.requests[0].body["stream"] is True
    await llm.close()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (stream_reply("Be", "cause", finish_reason=None), "broke off"),
        (stream_reply("Be", "cause", finish_reason=None, done=False), "broke off"),
        (stream_reply("Be", "cause", finish_reason="length"), "was cut off"),
        (Reply(b"data: {nonsense\n\n", headers={"content-type": "text/event-stream"}), "cannot be read"),
        (json_reply({}, 401), "refused the API key"),
    ],
    ids=["no end", "no done", "length", "nonsense", "401"],
)
async def test_a_stream_that_breaks_off_ends_in_an_error(
    service: OpenAIDouble, llm: OpenAILLM, fault: Reply, message: str
) -> None:
    service.script.extend([fault] * 2)
    with pytest.raises(RemoteError, match=message):
        async for _ in llm.stream(TALK, max_tokens=50, seconds=5):
            pass
    await llm.close()


async def test_a_stream_that_hangs_is_left(service: OpenAIDouble, llm: OpenAILLM) -> None:
    service.script.append(Reply(hang=True))
    with pytest.raises(RemoteError, match=r"did not answer within 0\.05 s"):
        async for _ in llm.stream(TALK, max_tokens=50, seconds=0.05):
            pass
    await llm.close()


async def test_a_stream_can_be_left_early(service: OpenAIDouble, llm: OpenAILLM) -> None:
    service.script.append(stream_reply("Be", "cause", "."))
    stream = llm.stream(TALK, max_tokens=50, seconds=5)
    async for part in stream:
        assert part == "Be"
        break
    await stream.aclose()
    await llm.close()


@pytest.fixture
def dear(service: OpenAIDouble) -> OpenAILLM:
    """Two dollars for a million tokens to read, ten to write."""
    settings = RemoteModel(base_url=service.url, timeout=5, retries=0)
    return OpenAILLM("small", settings, prices=(2.0, 10.0), sleep=no_wait)


@pytest.mark.req("R-TEN-12")
async def test_what_a_reply_costs_is_on_the_bill(service: OpenAIDouble, dear: OpenAILLM) -> None:
    service.script.extend([chat_reply("Because.", usage=(100, 20)), stream_reply("Be", "cause.", usage=(50, 10))])
    with collect_costs() as bill:
        await dear.complete(TALK, max_tokens=50, seconds=5)
        assert bill == {"llm": pytest.approx(400e-6)}
        async for _ in dear.stream(TALK, max_tokens=50, seconds=5):
            pass
    assert bill == {"llm": pytest.approx(600e-6)}
    assert service.requests[1].body["stream_options"] == {"include_usage": True}
    await dear.close()


@pytest.mark.req("R-TEN-12")
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_service_that_does_not_count_is_paid_by_estimate(
    service: OpenAIDouble, dear: OpenAILLM, streamed: bool
) -> None:
    service.script.append(stream_reply("Be", "cause", ".") if streamed else chat_reply("Because."))
    with collect_costs() as bill:
        if streamed:
            assert [part async for part in dear.stream(TALK, max_tokens=50, seconds=5)]
        else:
            await dear.complete(TALK, max_tokens=50, seconds=5)
    read, written = 3 + 2, 2
    assert bill == {"llm": pytest.approx((2 * read + 10 * written) / 1e6)}
    await dear.close()


@pytest.mark.req("R-TEN-12")
@pytest.mark.parametrize("fault", [chat_reply("Because of th", "length", (9, 50)), chat_reply("  ", usage=(9, 50))])
async def test_a_reply_of_no_use_is_paid_for(service: OpenAIDouble, dear: OpenAILLM, fault: Reply) -> None:
    service.script.append(fault)
    with collect_costs() as bill, pytest.raises(RemoteError):
        await dear.complete(TALK, max_tokens=50, seconds=5)
    assert bill == {"llm": pytest.approx(518e-6)}
    await dear.close()


@pytest.mark.req("R-TEN-12")
async def test_a_stream_that_is_left_early_is_paid_for(service: OpenAIDouble, dear: OpenAILLM) -> None:
    service.script.append(stream_reply("Be", "cause", "."))
    with collect_costs() as bill:
        stream = dear.stream(TALK, max_tokens=50, seconds=5)
        await anext(stream)
        await stream.aclose()
    assert bill == {"llm": pytest.approx((2 * 5 + 10) / 1e6)}
    await dear.close()


async def test_a_model_without_a_price_costs_nothing(service: OpenAIDouble, llm: OpenAILLM) -> None:
    service.script.append(chat_reply("Because.", usage=(100, 20)))
    with collect_costs() as bill:
        await llm.complete(TALK, max_tokens=50, seconds=5)
    assert bill == {}
    await llm.close()


async def test_without_the_client_it_says_what_to_install(
    service: OpenAIDouble, llm: OpenAILLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(RemoteError, match="needs the openai package") as caught:
        await llm.complete(TALK, max_tokens=50, seconds=5)
    assert caught.value.hint == 'pip install "ragstone[llm]"'
    with pytest.raises(RemoteError, match="needs the openai package"):
        await anext(llm.stream(TALK, max_tokens=50, seconds=5))
    await llm.close()
