"""An answer while the embedding model is replaced by its fallback."""

from __future__ import annotations

from collections.abc import Callable

from ragstone.answer.extract import Extractor
from ragstone.core.errors import ModelError
from ragstone.core.types import Hit
from ragstone.models.embedders.pool import FallbackEmbedder
from ragstone.testing.fakes import FakeEmbedder

QUESTION = "How long does the booking call hold places?"
TEXT = "The booking call holds places for fifteen minutes."


async def test_answers_go_on_after_the_switch(make_hit: Callable[..., Hit]) -> None:
    first = FakeEmbedder(name="first", dimension=768)
    embedder = FallbackEmbedder(first, FakeEmbedder(name="second", dimension=64))
    extractor = Extractor(embedder)
    before = await extractor.extract(QUESTION, [make_hit(TEXT)], max_sentences=2)
    first.errors = [ModelError("gone")]
    after = await extractor.extract(QUESTION, [make_hit(TEXT)], max_sentences=2)
    assert before.degraded == after.degraded == ()
    assert [said.text for said in after.statements] == [said.text for said in before.statements]


async def test_a_switch_between_two_calls_leaves_the_words(make_hit: Callable[..., Hit]) -> None:
    first = FakeEmbedder(name="first", dimension=768)
    embedder = FallbackEmbedder(first, FakeEmbedder(name="second", dimension=64))
    extractor = Extractor(embedder)
    await extractor.extract(QUESTION, [make_hit(TEXT)], max_sentences=2)
    embed = first.embed

    async def dies_on_sentences(texts, role="document"):  # type: ignore[no-untyped-def]
        if role == "document":
            raise ModelError("gone")
        return await embed(texts, role)

    first.embed = dies_on_sentences  # type: ignore[method-assign]
    done = await extractor.extract(QUESTION, [make_hit(TEXT)], max_sentences=2)
    assert done.degraded == (
        "answer: sentences chosen by words only: the embedding model changed while sentences were compared",
    )
