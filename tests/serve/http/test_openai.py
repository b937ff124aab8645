"""The official client of OpenAI talks to the service: models, embeddings, chat with citations."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from tests.serve.http.live import LiveService, run_examples, serve_live

from ragstone import Item, Settings
from ragstone.core.answers import Answer, AnswerEvent, CitationsReady
from ragstone.engine.workspace import Workspace
from ragstone.serve.http import identity, replies
from ragstone.serve.http.openai import chat
from ragstone.serve.http.openai.bodies import ChatMessage
from ragstone.serve.http.openai.chat import Completion
from ragstone.testing.fakes import FakeEmbedder

FIRST, SECOND = "When does the harbour open?", "What does it cost?"
OPENS = "The harbour opens at six in the morning."
TEXTS = {
    "https://harbour.example/hours": f"{OPENS} A berth in the harbour costs nine crowns.",
    "notes/ferry.md": "The ferry leaves at noon. A ticket for the ferry costs six crowns.",
    "notes/refunds.md": "Refunds take five working days.",
    "notes/gate.md": "The tide gate opens at nine in the morning.",
}
EMBEDDING = "granite-embedding-30m-english"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    with serve_live(Settings(data_dir=tmp_path_factory.mktemp("data"))) as served:
        served.key()

        async def fill() -> None:
            workspace = served.engine.workspace("acme")
            items = [Item("test", uri, uri, text, title=uri.rsplit("/")[-1]) for uri, text in TEXTS.items()]
            await workspace.documents.ingest_items(items)
            await workspace.documents.ingest_items(
                [Item("test", "v", "vault.md", "The vault code is 1234.", title="Vault")], kb="vault"
            )

        served.run(fill())
        yield served


def client(live: LiveService, token: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{live.url}/v1", api_key=token, max_retries=0)


@pytest.fixture(scope="module")
def acme(live: LiveService) -> Iterator[openai.OpenAI]:
    with client(live, live.key().token) as opened:
        yield opened


@pytest.fixture(scope="module")
def globex(live: LiveService) -> Iterator[openai.OpenAI]:
    with client(live, live.key("globex").token) as opened:
        yield opened


def ask(*said: str) -> list[Any]:
    """Turns of user and assistant, the user's first."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]


def test_the_models_are_what_a_caller_can_talk_to(
    live: LiveService, acme: openai.OpenAI, globex: openai.OpenAI
) -> None:
    assert [one.id for one in acme.models.list()] == ["ragstone", "ragstone/default", "ragstone/vault", EMBEDDING]
    assert [one.id for one in globex.models.list()] == [EMBEDDING]
    with client(live, live.key("acme", "read", kbs=("vault",)).token) as limited:
        assert [one.id for one in limited.models.list()] == ["ragstone", "ragstone/vault", EMBEDDING]
        with pytest.raises(openai.NotFoundError):
            limited.models.retrieve("ragstone/default")
    assert acme.models.retrieve("ragstone/vault").id == "ragstone/vault"
    assert acme.models.retrieve(EMBEDDING).object == "model"
    for name in ("ragstone/nowhere", "ragstone/", "gpt-4o"):
        with pytest.raises(openai.NotFoundError):
            acme.models.retrieve(name)


def test_a_reply_has_marks_and_the_passages_behind_them(acme: openai.OpenAI) -> None:
    reply = acme.chat.completions.create(model="ragstone", messages=ask(FIRST), temperature=0.2, user="u", seed=7)
    (choice,) = reply.choices
    assert (reply.object, reply.model, choice.finish_reason) == ("chat.completion", "ragstone", "stop")
    assert choice.message.content == f"{OPENS} [1]"
    (citation,) = reply.model_extra["citations"]
    assert (citation["n"], citation["quote"]) == (1, OPENS)
    assert reply.model_extra["status"] == "answered"
    (annotation,) = choice.message.annotations or []
    place = annotation.url_citation
    assert choice.message.content[place.start_index : place.end_index] == "[1]"
    assert (place.url, place.title) == ("https://harbour.example/hours", "hours")
    assert reply.usage
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 10


async def test_words_are_counted_beside_the_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[int]()

    def count(text: str) -> int:
        threads.append(threading.get_ident())
        return len(text)

    monkeypatch.setattr(chat, "_count", count)
    told = Completion("ragstone", [ChatMessage(role="user", content=FIRST)], "[{index}]")
    made = await told.whole(Answer(FIRST, OPENS, (), (), "no_evidence"))
    assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (len(FIRST), len(OPENS))
    assert threading.get_ident() not in threads


def test_a_file_is_cited_but_is_no_web_page(acme: openai.OpenAI) -> None:
    reply = acme.chat.completions.create(
        model="ragstone/default", messages=ask("When does the tide gate open?"), max_tokens=10, top_p=1
    )
    assert [one["uri"] for one in reply.model_extra["citations"]] == ["notes/gate.md"]
    assert reply.choices[0].message.annotations == []


def test_a_follow_up_is_read_in_the_light_of_the_messages_before_it(acme: openai.OpenAI) -> None:
    system = {"role": "system", "content": "You are a pirate."}
    told = acme.chat.completions.create(model="ragstone", messages=[system, *ask(FIRST, f"{OPENS} [1]", SECOND)])
    assert "nine crowns" in told.choices[0].message.content
    assert "six crowns" not in told.choices[0].message.content


def test_a_stream_says_the_same_as_a_whole_reply(acme: openai.OpenAI) -> None:
    asked = {"model": "ragstone", "messages": ask(FIRST)}
    whole = acme.chat.completions.create(**asked)
    chunks = list(acme.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    *_, last, usage = chunks
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert text == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["stop"]
    assert last.model_extra["citations"] == whole.model_extra["citations"]
    assert (usage.choices, usage.usage) == ([], whole.usage)


def test_the_bytes_of_a_stream_are_as_clients_expect_them(live: LiveService) -> None:
    body = {"model": "ragstone", "messages": ask("What colour has the moon?"), "stream": True}
    headers = {"Authorization": f"Bearer {live.key().token}"}
    answer = httpx2.post(f"{live.url}/v1/chat/completions", json=body, headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, done, end = answer.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    read = [json.loads(chunk.removeprefix("data: ")) for chunk in chunks]
    assert "usage" not in json.dumps(read)
    assert (read[-1]["status"], read[-1]["outcome"]) == ("no_evidence", "nothing")
    assert (read[-1]["nearest"], read[-1]["missing"], read[-1]["waiting"]) == ([], ["colour", "moon"], 0)
    assert "".join(one["choices"][0]["delta"].get("content", "") for one in read)


def test_a_key_that_is_revoked_ends_the_stream(live: LiveService, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer_never(*_: Any) -> AsyncIterator[AnswerEvent]:
        await asyncio.Event().wait()
        yield CitationsReady(())

    monkeypatch.setattr(identity, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(replies, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(Workspace, "stream", answer_never)
    issued = live.key("acme", "read")
    with client(live, issued.token) as leaving:
        stream = iter(leaving.chat.completions.create(model="ragstone", messages=ask(FIRST), stream=True))
        live.run(live.engine.keys.revoke(issued.key.id, tenant="acme"))
        with pytest.raises(openai.APIError, match="not valid any more"):
            list(stream)
        with pytest.raises(openai.AuthenticationError):
            leaving.models.list()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages.0"),
        ({"messages": ask("a" * 600_000, "b" * 400_001, FIRST)}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a" * 1_000_001}]}]}, "messages"),
        ({"n": 2}, "n"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"logprobs": True}, "logprobs"),
    ],
)
def test_what_is_not_offered_is_refused(acme: openai.OpenAI, body: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        acme.chat.completions.create(**{"model": "ragstone", "messages": ask(FIRST)} | body)
    told = refused.value.body
    assert isinstance(told, dict)
    assert (told["type"], told["code"]) == ("invalid_request_error", "invalid_input")
    assert told["param"].startswith(param)


def test_parts_of_text_are_read_as_one_message(acme: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "When does the harbour"}, {"type": "text", "text": "open?"}]
    reply = acme.chat.completions.create(model="ragstone", messages=[{"role": "user", "content": parts}], tools=[])
    assert OPENS in reply.choices[0].message.content


def test_a_kb_of_another_tenant_is_as_unknown_as_any(acme: openai.OpenAI, globex: openai.OpenAI) -> None:
    said = []
    for kb in ("vault", "nowhere"):
        for stream in (False, True):
            with pytest.raises(openai.NotFoundError) as refused:
                globex.chat.completions.create(model=f"ragstone/{kb}", messages=ask("The code?"), stream=stream)
            told = refused.value.body
            assert isinstance(told, dict)
            said.append((told["message"].replace(kb, "KB"), told["hint"].replace(kb, "KB"), told["code"]))
    assert len(set(said)) == 1
    code = acme.chat.completions.create(model="ragstone/vault", messages=ask("What is the vault code?"))
    assert "1234" in code.choices[0].message.content


def test_a_key_without_the_scope_is_refused(live: LiveService) -> None:
    with client(live, live.key("acme", "write").token) as writer, pytest.raises(openai.PermissionDeniedError):
        writer.chat.completions.create(model="ragstone", messages=ask(FIRST))


def test_embeddings_are_those_of_the_model_in_both_encodings(acme: openai.OpenAI) -> None:
    # The client asks for base64 unless told otherwise.
    packed = acme.embeddings.create(model=EMBEDDING, input=["ferry", "gate"])
    plain = acme.embeddings.create(model=EMBEDDING, input="gate", encoding_format="float", dimensions=64)
    assert [one.index for one in packed.data] == [0, 1]
    assert packed.data[1].embedding == plain.data[0].embedding
    assert len(plain.data[0].embedding) == FakeEmbedder().model.dimension == 64
    assert plain.usage.prompt_tokens == plain.usage.total_tokens == 1


@pytest.mark.parametrize(
    "body",
    [
        {"input": ""},
        {"input": []},
        {"input": ["x"] * 2049},
        {"input": ["x" * 300_000] * 2},
        {"input": [1, 2, 3]},
        {"input": [[1, 2], [3]]},
        {"input": "x", "dimensions": 8},
        {"input": "x", "encoding_format": "int8"},
    ],
)
def test_other_inputs_are_refused(acme: openai.OpenAI, body: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError):
        acme.embeddings.create(**{"model": EMBEDDING} | body)


def test_the_examples_of_the_guide_run(live: LiveService, tmp_path: Path) -> None:
    printed = run_examples("chat-frontends.md", live, live.key("acme").token, tmp_path)
    assert len(printed) == 3
    assert "Refunds take five working days. [1]" in printed[0]
    assert printed[1].startswith("Refunds take five working days. [1]\n1 notes/refunds.md Refunds")
    assert len(json.loads(printed[2])["data"]) == 2


def test_only_the_model_of_the_settings_embeds(acme: openai.OpenAI) -> None:
    for name in ("text-embedding-3-small", "ragstone"):
        with pytest.raises(openai.NotFoundError):
            acme.embeddings.create(model=name, input="x")
    with pytest.raises(openai.NotFoundError):
        acme.chat.completions.create(model=EMBEDDING, messages=ask(FIRST))
