"""A configured reranker helps to choose what is quoted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from ragstone.answer import extract
from ragstone.answer.extract import SHORTLIST, Extraction, Extractor
from ragstone.core.errors import ModelError
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit
from ragstone.testing.fakes import FakeReranker

MakeHit = Callable[..., Hit]
QUESTION = "When does the pump stop?"
REPEATED = "The pump may stop when someone tells the pump to stop."
TOLD = "Beyond 80 degrees it no longer runs."
TEXT = f"{REPEATED} Our fans are always blue. {TOLD} Lamps of the hall are green."


class Preferring(FakeReranker):
    """Finds passages with some words relevant, and no others."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        await super().score(query, passages)
        return [0.99 if self._words in passage else 0.01 for passage in passages]


class Hanging(FakeReranker):
    """Never returns."""

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        await asyncio.Event().wait()
        return []


@pytest.fixture
def make_reranked(make_hit: MakeHit) -> MakeHit:
    """Make a hit of a search that reranked."""
    return lambda text: replace(make_hit(text), scores={"rerank": 0.9})


def said(extraction: Extraction) -> list[str]:
    return [statement.text for statement in (*extraction.statements, *extraction.nearest)]


async def test_what_the_reranker_finds_relevant_is_quoted_first(embedder: Embedder, make_reranked: MakeHit) -> None:
    hits = [make_reranked(TEXT)]
    alone = await Extractor(embedder).extract(QUESTION, hits, max_sentences=4)
    helped = await Extractor(embedder, Preferring("80 degrees")).extract(QUESTION, hits, max_sentences=4)
    assert TOLD not in said(alone)
    assert TOLD in said(helped)
    assert helped.degraded == ()


async def test_where_the_search_did_without_the_reranker_so_does_the_answer(
    embedder: Embedder, make_hit: MakeHit
) -> None:
    reranker = Preferring("80 degrees")
    extraction = await Extractor(embedder, reranker).extract(QUESTION, [make_hit(TEXT)], max_sentences=4)
    assert TOLD not in said(extraction)
    assert reranker.calls == []


async def test_the_reranker_reads_every_unit_that_is_compared(embedder: Embedder, make_reranked: MakeHit) -> None:
    filler = " ".join(f"Number {n} of the pumps tells about other matters." for n in range(60))
    reranker = Preferring(REPEATED)
    found, _ = await Extractor(embedder, reranker).compare(QUESTION, [make_reranked(f"{TEXT} {filler}")])
    [(query, passages)] = reranker.calls
    assert (query, len(passages)) == (QUESTION, SHORTLIST)
    assert len(found.units) > SHORTLIST
    assert [item.unit.text for item in found.short if item.reranked > 0] == [REPEATED]


@pytest.mark.parametrize(
    ("reranker", "reason"),
    [
        (FakeReranker(errors=[ModelError("the model is not installed")]), "the model is not installed"),
        (Hanging(), "no scores within 0.01 s"),
    ],
)
async def test_without_its_scores_the_answer_is_as_without_it_and_says_so(
    embedder: Embedder, make_reranked: MakeHit, monkeypatch: pytest.MonkeyPatch, reranker: FakeReranker, reason: str
) -> None:
    monkeypatch.setattr(extract, "RERANK_SECONDS", 0.01)
    hits = [make_reranked(TEXT)]
    alone = await Extractor(embedder).extract(QUESTION, hits, max_sentences=4)
    without = await Extractor(embedder, reranker).extract(QUESTION, hits, max_sentences=4)
    assert said(without) == said(alone)
    assert without.degraded == (f"answer: sentences chosen without the reranker: {reason}",)
