from __future__ import annotations

import logging

import pytest
from tests.doubles.openai import OpenAIDouble, Reply, Request, json_reply

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.models.embedders.pool import FallbackEmbedder
from ragstone.models.embedders.remote import RemoteEmbedder
from ragstone.settings.tree import RemoteModel
from ragstone.testing.fakes import FakeEmbedder


@pytest.mark.req("R-EMB-17")
async def test_a_failure_switches_for_later_calls_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    first = FakeEmbedder(name="first", dimension=768, errors=[ModelUnavailable("no weights")])
    second = FakeEmbedder(name="second", dimension=1536)
    embedder = FallbackEmbedder(first, second)
    assert embedder.model.name == "first"
    made = await embedder.embed(["cat"])
    again = await embedder.embed(["cat"])
    assert made.model == again.model == embedder.model.id == "second@1"
    assert made.vectors.shape == (1, 1536)
    assert len(first.calls) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "first failed (no weights); second is used from now on"
    ]


async def test_a_bad_text_is_no_reason_to_switch() -> None:
    embedder = FallbackEmbedder(FakeEmbedder(name="first", refuse={"bad"}), FakeEmbedder(name="second"))
    made = await embedder.embed(["bad"])
    assert (made.model, made.failed) == ("first@1", (0,))


@pytest.mark.req("R-EMB-17")
async def test_a_query_that_a_service_refuses_is_no_reason_to_switch() -> None:
    def answer(request: Request) -> Reply:
        if "long" in request.body["input"][0]:
            return json_reply({"error": {"message": "too many tokens"}}, 413)
        return json_reply({"data": [{"index": 0, "embedding": [1.0, 0.0]}], "model": "house"})

    with OpenAIDouble(answer) as service:
        first = RemoteEmbedder("house", RemoteModel(base_url=service.url, api_key="x", retries=0))
        embedder = FallbackEmbedder(first, FakeEmbedder(name="spare"))
        refused = await embedder.embed(["a long query"], "query")
        good = await embedder.embed(["a good query"], "query")
        await embedder.close()
    assert (refused.model, refused.failed) == ("house", (0,))
    assert (good.model, good.failed, good.vectors.tolist()) == ("house", (), [[1.0, 0.0]])


async def test_when_both_fail_the_second_error_counts() -> None:
    first = FakeEmbedder(errors=[ModelError("one")])
    second = FakeEmbedder(errors=[ModelError("two")])
    with pytest.raises(ModelError, match="two"):
        await FallbackEmbedder(first, second).embed(["cat"])


async def test_closing_closes_both() -> None:
    first, second = FakeEmbedder(), FakeEmbedder()
    await FallbackEmbedder(first, second).close()
    assert first.closed
    assert second.closed


async def test_a_wrong_dimension_is_a_wrong_setting_and_no_reason_to_switch() -> None:
    first = FakeEmbedder(name="first", errors=[ModelMismatch("384 dimensions, not 768")])
    embedder = FallbackEmbedder(first, FakeEmbedder(name="second"))
    with pytest.raises(ModelMismatch):
        await embedder.embed(["cat"])
    assert embedder.model.name == "first"
