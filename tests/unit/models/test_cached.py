from __future__ import annotations

import numpy as np
import pytest

from ragstone.core.errors import ModelError
from ragstone.models.embedders.pool import CachedEmbedder, FallbackEmbedder
from ragstone.testing.fakes import FakeEmbedder


@pytest.mark.req("R-EMB-16")
async def test_equal_texts_of_one_call_are_embedded_once() -> None:
    inner = FakeEmbedder()
    made = await CachedEmbedder(inner).embed(["cat", "mat", "cat", "cat"])
    assert inner.calls == [(("cat", "mat"), "document")]
    np.testing.assert_array_equal(made.vectors, (await inner.embed(["cat", "mat", "cat", "cat"])).vectors)


@pytest.mark.req("R-EMB-15", "R-EMB-16", "R-MOD-14")
async def test_a_query_is_remembered_for_five_minutes() -> None:
    now = [1000.0]
    inner = FakeEmbedder()
    cached = CachedEmbedder(inner, clock=lambda: now[0])
    first = await cached.embed(["cat"], "query")
    now[0] += 299.0
    again = await cached.embed(["cat"], "query")
    assert len(inner.calls) == 1
    np.testing.assert_array_equal(first.vectors, again.vectors)
    assert again.model == first.model
    now[0] += 1.0
    await cached.embed(["cat"], "query")
    assert len(inner.calls) == 2


async def test_only_what_is_missing_is_asked_for() -> None:
    inner = FakeEmbedder()
    cached = CachedEmbedder(inner)
    await cached.embed(["cat"], "query")
    made = await cached.embed(["mat", "cat", "rates"], "query")
    assert inner.calls[1] == (("mat", "rates"), "query")
    np.testing.assert_array_equal(made.vectors, (await inner.embed(["mat", "cat", "rates"])).vectors)


async def test_documents_and_queries_are_kept_apart() -> None:
    inner = FakeEmbedder()
    cached = CachedEmbedder(inner)
    await cached.embed(["cat"], "query")
    await cached.embed(["cat"], "document")
    await cached.embed(["cat"], "document")
    assert [role for _, role in inner.calls] == ["query", "document", "document"]


async def test_a_refused_text_is_not_remembered() -> None:
    inner = FakeEmbedder(refuse={"bad"})
    cached = CachedEmbedder(inner)
    made = await cached.embed(["bad", "cat", "bad"], "query")
    assert made.failed == (0, 2)
    inner.refuse = ()
    assert (await cached.embed(["bad"], "query")).failed == ()


async def test_the_memory_is_bounded_and_the_oldest_goes() -> None:
    inner = FakeEmbedder()
    cached = CachedEmbedder(inner, entries=2)
    for text in ("one", "two", "one", "three", "one"):
        await cached.embed([text], "query")
    assert [texts for texts, _ in inner.calls] == [("one",), ("two",), ("three",)]
    await cached.embed(["two"], "query")
    assert len(inner.calls) == 4


@pytest.mark.req("R-EMB-15")
async def test_vectors_of_two_models_never_mix() -> None:
    first, second = FakeEmbedder(name="first"), FakeEmbedder(name="second", dimension=32)
    cached = CachedEmbedder(FallbackEmbedder(first, second))
    await cached.embed(["cat"], "query")
    first.errors.append(ModelError("gone"))
    made = await cached.embed(["cat", "mat"], "query")
    assert made.model == "second@1"
    assert made.vectors.shape == (2, 32)
    np.testing.assert_array_equal(made.vectors, (await second.embed(["cat", "mat"])).vectors)


async def test_what_a_caller_does_to_a_vector_stays_with_the_caller() -> None:
    cached = CachedEmbedder(FakeEmbedder())
    first = await cached.embed(["cat"], "query")
    expected = first.vectors.copy()
    first.vectors[:] = 0
    np.testing.assert_array_equal((await cached.embed(["cat"], "query")).vectors, expected)


async def test_closing_closes_what_is_wrapped() -> None:
    inner = FakeEmbedder()
    await CachedEmbedder(inner).close()
    assert inner.closed
