from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import numpy as np
import pytest
from tests.doubles.openai import OpenAIDouble, Reply, Request, json_reply

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.models.embedders.remote import RemoteEmbedder
from ragstone.models.llm import openai_client
from ragstone.settings.load import load_settings
from ragstone.settings.tree import RemoteModel
from ragstone.testing.fakes import FakeEmbedder

BEHIND = FakeEmbedder(dimension=1536)
SECRET = "sk-canary-1234567890"


def embeddings(request: Request) -> Reply:
    """What the real service does: refuses an empty or poisoned input, embeds the rest."""
    texts = request.body["input"]
    if any("poison" in text or not text for text in texts):
        return json_reply({"error": {"message": f"bad input with {SECRET}"}}, 400)
    dimension = request.body.get("dimensions", 1536)
    vectors = asyncio.run(BEHIND.embed(texts)).vectors[:, :dimension]
    rows = [
        {"object": "embedding", "index": index, "embedding": vector.tolist()} for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 3 * len(texts), "total_tokens": 3 * len(texts)}
    return json_reply({"object": "list", "data": rows, "model": "m", "usage": usage})


@pytest.fixture
def service() -> Iterator[OpenAIDouble]:
    with OpenAIDouble(embeddings) as double:
        yield double


class Patience:
    """Notes how long it was asked to wait, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def remote(service: OpenAIDouble, model: str = "text-embedding-3-small", **options: object) -> RemoteEmbedder:
    settings = {"base_url": service.url, "api_key": SECRET, "timeout": 5.0, "retries": 2}
    named = {name: options.pop(name) for name in list(options) if name in settings}
    return RemoteEmbedder(model, RemoteModel(**settings | named), **options)


@pytest.mark.req("R-EMB-03", "R-EMB-05")
@pytest.mark.parametrize("model", ["text-embedding-3-small", "text-embedding-ada-002"])
async def test_openai_models_give_1536_dimensions(service: OpenAIDouble, model: str) -> None:
    embedder = remote(service, model)
    made = await embedder.embed(["the cat", "the mat"])
    assert made.vectors.shape == (2, 1536)
    assert made.model == model
    assert embedder.tokens_used == 6
    (request,) = service.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.body == {"model": model, "input": ["the cat", "the mat"], "encoding_format": "float"}
    await embedder.close()


@pytest.mark.req("R-EMB-12")
async def test_at_most_100_texts_a_call(service: OpenAIDouble) -> None:
    embedder = remote(service)
    texts = [f"text {number}" for number in range(230)]
    made = await embedder.embed(texts)
    assert [len(request.body["input"]) for request in service.requests] == [100, 100, 30]
    expected = await BEHIND.embed(texts)
    np.testing.assert_allclose(made.vectors, expected.vectors, atol=1e-5)
    await embedder.close()


async def test_shorter_vectors_can_be_asked_for(service: OpenAIDouble) -> None:
    embedder = remote(service, dimensions=256)
    made = await embedder.embed(["the cat"])
    assert made.vectors.shape == (1, 256)
    assert np.linalg.norm(made.vectors) == pytest.approx(1.0, abs=1e-5)
    assert service.requests[0].body["dimensions"] == 256
    await embedder.close()


@pytest.mark.req("R-EMB-19")
async def test_a_refused_text_is_found_and_counted(service: OpenAIDouble) -> None:
    embedder = remote(service)
    texts = [f"text {number}" for number in range(50)]
    texts[17] = "poison"
    texts[30] = ""
    made = await embedder.embed(texts)
    assert made.failed == (17, 30)
    assert not made.vectors[[17, 30]].any()
    good = [index for index in range(50) if index not in (17, 30)]
    expected = await BEHIND.embed([texts[index] for index in good])
    np.testing.assert_allclose(made.vectors[good], expected.vectors, atol=1e-5)
    await embedder.close()


@pytest.mark.req("R-EMB-19")
@pytest.mark.parametrize("texts", [["poison"], ["poison one", "poison two"], [f"poison {n}" for n in range(40)]])
async def test_refused_texts_are_counted_also_where_no_other_is_embedded(
    service: OpenAIDouble, texts: list[str]
) -> None:
    embedder = remote(service, "house")
    made = await embedder.embed(texts)
    assert made.failed == tuple(range(len(texts)))
    assert made.vectors.shape == (len(texts), 1536)
    assert embedder.model.dimension == 1536
    await embedder.close()


@pytest.mark.parametrize("count", [1, 2, 100])
async def test_when_a_plain_text_is_refused_too_it_is_the_model(service: OpenAIDouble, count: int) -> None:
    service.script.extend([json_reply({}, 400)] * 40)
    embedder = remote(service)
    with pytest.raises(ModelError, match="refuses every text for text-embedding-3-small"):
        await embedder.embed([f"text {n}" for n in range(count)])
    assert len(service.requests) < 40
    await embedder.close()


@pytest.mark.req("R-EMB-19")
@pytest.mark.parametrize(
    "fault",
    [
        json_reply({}, 500),
        json_reply({}, 503),
        json_reply({}, 429),
        Reply(b'{"data": [{"ind'),
        json_reply({"data": []}),
        json_reply({"data": [{"index": 0, "embedding": "nonsense!"}]}),
        json_reply(["not", "an", "object"]),
        Reply(b'{"data": [], "more": "than is sent"}', cut=True),
    ],
    ids=["500", "503", "429", "truncated", "empty", "nonsense", "schema", "cut"],
)
async def test_a_passing_fault_is_tried_again(service: OpenAIDouble, fault: Reply) -> None:
    service.script.append(fault)
    patience = Patience()
    embedder = remote(service, sleep=patience)
    made = await embedder.embed(["the cat"])
    assert made.failed == ()
    assert len(service.requests) == 2
    assert patience.waits == [0.5]
    await embedder.close()


@pytest.mark.parametrize(("asked", "waited"), [("7", 7.0), ("9999", 30.0), ("soon", 0.5)])
async def test_it_waits_as_long_as_it_is_asked_to(service: OpenAIDouble, asked: str, waited: float) -> None:
    service.script.append(json_reply({}, 429, retry_after=asked))
    patience = Patience()
    embedder = remote(service, sleep=patience)
    await embedder.embed(["the cat"])
    assert patience.waits == [waited]
    await embedder.close()


async def test_retries_end(service: OpenAIDouble) -> None:
    service.script.extend([json_reply({}, 500)] * 3)
    patience = Patience()
    embedder = remote(service, sleep=patience)
    with pytest.raises(ModelError, match=r"text-embedding-3-small: 127\.0\.0\.1:\d+ failed \(500\)"):
        await embedder.embed(["the cat"])
    assert patience.waits == [0.5, 1.0]
    assert len(service.requests) == 3
    await embedder.close()


async def test_a_service_that_hangs_is_left(service: OpenAIDouble) -> None:
    service.script.append(Reply(hang=True))
    embedder = remote(service, timeout=0.05, retries=0)
    with pytest.raises(ModelError, match=r"did not answer within 0\.05 s"):
        await embedder.embed(["the cat"])
    await embedder.close()


async def test_a_service_that_is_down() -> None:
    with OpenAIDouble(embeddings) as gone:
        url = gone.url
    embedder = RemoteEmbedder("text-embedding-3-small", RemoteModel(base_url=url, api_key=SECRET, retries=0))
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        await embedder.embed(["the cat"])
    assert caught.value.hint == "check the base_url and that the service runs"
    await embedder.close()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500])
async def test_no_secret_is_repeated(service: OpenAIDouble, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    service.script.extend([json_reply({"error": {"message": f"key {SECRET} is wrong"}}, status)] * 3)
    embedder = remote(service, sleep=Patience())
    with pytest.raises(ModelError) as caught:
        await embedder.embed(["the cat"])
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error!r} {error} {getattr(error, 'hint', '')}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert SECRET not in caplog.text
    assert SECRET not in repr(embedder.__dict__)
    await embedder.close()


async def test_a_refused_key_is_not_tried_again(service: OpenAIDouble) -> None:
    service.script.append(json_reply({}, 401))
    embedder = remote(service)
    with pytest.raises(ModelError, match=r"refused the API key \(401\)") as caught:
        await embedder.embed(["the cat"])
    assert "api_key" in caught.value.hint
    assert len(service.requests) == 1
    await embedder.close()


async def test_vectors_of_another_dimension_are_refused(service: OpenAIDouble) -> None:
    embedder = remote(service, "text-embedding-3-large")
    with pytest.raises(ModelMismatch, match="1536 dimensions where 3072"):
        await embedder.embed(["the cat"])
    await embedder.close()


async def test_an_unknown_models_dimension_is_learnt_and_held_to(service: OpenAIDouble) -> None:
    embedder = remote(service, "nomic-embed-text")
    assert embedder.model.dimension == 0
    await embedder.embed(["the cat"])
    assert embedder.model.dimension == 1536
    service.script.append(json_reply({"data": [{"index": 0, "embedding": [1.0, 2.0]}], "model": "m"}))
    with pytest.raises(ModelMismatch, match="2 dimensions where 1536"):
        await embedder.embed(["the cat"])
    await embedder.close()


@pytest.mark.req("R-CLI-17", "R-CLI-18")
def test_a_key_in_the_environment_is_sent_to_its_service_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENROUTER_API_KEY", "router's")
    router = openai_client.OpenAIService(load_settings(overrides={"profile": "takaro"}, environment={}).llm)
    assert router._key() == "router's"
    openai = openai_client.OpenAIService(RemoteModel())
    other = openai_client.OpenAIService(RemoteModel(base_url="http://127.0.0.1:1/v1"))
    own = openai_client.OpenAIService(RemoteModel(api_key="mine"))
    assert (openai._key(), other._key(), own._key()) == (SECRET, "none", "mine")


async def test_without_a_key_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    embedder = RemoteEmbedder("text-embedding-3-small")
    with pytest.raises(ModelUnavailable, match="needs an API key") as caught:
        await embedder.embed(["the cat"])
    assert "OPENAI_API_KEY" in caught.value.hint
    await embedder.close()


def test_an_address_is_shown_without_its_password() -> None:
    service = openai_client.OpenAIService(RemoteModel(base_url="http://user:pass@host.example:8080/v1?key=x"))
    assert service.host == "host.example:8080"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_refused_connection_is_not_tried_again(host: str) -> None:
    with OpenAIDouble(embeddings) as gone:
        url = gone.url.replace("127.0.0.1", host)
    patience = Patience()
    embedder = RemoteEmbedder("m", RemoteModel(base_url=url, api_key=SECRET, retries=2), sleep=patience)
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        await embedder.embed(["the cat"])
    assert patience.waits == []
    assert caught.value.hint == "check the base_url and that the service runs"
    await embedder.close()
