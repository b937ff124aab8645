"""The reader helps to choose what is quoted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from ragstone.answer.extract import SHORTLIST, Extractor
from ragstone.answer.reader import Reader, describe_for_reader
from ragstone.answer.units import find_units
from ragstone.core.errors import ModelError
from ragstone.core.model_types import Embeddings
from ragstone.core.protocols import Embedder, Reranker
from ragstone.core.types import Hit, Role
from ragstone.testing.fakes import FakeEmbedder, FakeReranker

MakeHit = Callable[..., Hit]
QUESTION = "When does the pump stop?"
TEXT = "The pump may stop when someone tells the pump to stop. Our fans are blue. Beyond 80 degrees it no longer runs."


class Knowing(FakeReranker):
    """Is sure of texts that begin with some words, and of no others."""

    def __init__(self, beginning: str) -> None:
        super().__init__()
        self._beginning = beginning

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        await super().score(query, passages)
        return [0.999 if passage.startswith(self._beginning) else 0.001 for passage in passages]


def shown(hit: Hit, beginning: str) -> str:
    units = find_units([hit], addresses=True)
    return describe_for_reader(next(unit for unit in units if unit.text.startswith(beginning)), frozenset())


def test_a_sentence_is_shown_with_the_one_before_and_with_its_place(make_hit: MakeHit) -> None:
    hit = make_hit("## Heat\n\nThe pump is\nred. Beyond 80 degrees it no longer runs.", section="Manual > Pumps > Heat")
    assert shown(hit, "Beyond") == "Beyond 80 degrees it no longer runs. | The pump is red. | Doc > Pumps > Heat"


def test_an_entry_is_shown_with_its_term(make_hit: MakeHit) -> None:
    text = f"pump_timeout (integer)\n  Sets how long the pump may run{', and run' * 40}. The default is five minutes."
    assert shown(make_hit(text), "The default") == "The default is five minutes. | pump_timeout (integer) | Doc"


def test_long_texts_are_cut(make_hit: MakeHit) -> None:
    words = " ".join(["pumps"] * 90)
    [own, lead, place] = shown(make_hit(f"{words}. The {words}.", section=words), "The").split(" | ")
    assert (len(own), len(lead), len(place)) == (300, 120, 100)


def test_what_a_reader_cannot_see_is_left_out(make_hit: MakeHit) -> None:
    assert "\u200b" not in shown(make_hit("The pump\u200b stops at 80 degrees."), "The")


def reader_of(model: Reranker, embedder: Embedder) -> Reader:
    return Reader(model, embedder.model.id)


async def test_what_the_reader_is_sure_of_comes_first(embedder: Embedder, make_hit: MakeHit) -> None:
    for model, first in ((None, "The pump may stop"), (Knowing("Our fans"), "Our fans"), (Knowing("Beyond"), "Beyond")):
        reader = reader_of(model, embedder) if model else None
        found, _ = await Extractor(embedder, reader=reader).compare(QUESTION, [make_hit(TEXT)])
        best = max(found.short, key=lambda item: item.score)
        assert best.unit.text.startswith(first)


async def test_it_reads_each_unit_that_is_compared(embedder: Embedder, make_hit: MakeHit) -> None:
    filler = " ".join(f"Number {n} of the pumps tells about other matters." for n in range(60))
    model = Knowing("The pump may stop")
    extractor = Extractor(embedder, reader=reader_of(model, embedder))
    found, notes = await extractor.compare(QUESTION, [make_hit(f"{TEXT} {filler}")])
    [(question, read)] = model.calls
    assert (question, len(read), notes) == (QUESTION, SHORTLIST, ())
    sure = [item.unit.text for item in found.short if item.reader_odds is not None and item.reader_odds > 0]
    assert sure == ["The pump may stop when someone tells the pump to stop."]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Wann wird die Pumpe abgeschaltet?", "Die Pumpe wird bei mehr als 80 Grad abgeschaltet. Sie ist rot."),
        ("Was tun bei Hitze?", "Bei Hitze muss die Pumpe sofort abgeschaltet werden. Sie ist dann rot."),
        ("When does the Pumpe stop?", "Die Pumpe wird bei mehr als 80 Grad von der Steuerung abgeschaltet, sonst nie."),
        ("默认端口是什么？", "默认端口是八千零八十。如果需要更改，请联系管理员。"),
    ],
)
async def test_it_reads_no_other_language(embedder: Embedder, make_hit: MakeHit, question: str, text: str) -> None:
    model = Knowing("Die Pumpe")
    found, notes = await Extractor(embedder, reader=reader_of(model, embedder)).compare(question, [make_hit(text)])
    assert found.short
    assert (model.calls, notes) == ([], ())
    assert {item.reader_odds for item in found.short} == {None}


async def test_it_is_not_used_beside_another_embedding_model(embedder: Embedder, make_hit: MakeHit) -> None:
    model = Knowing("Beyond")
    alone, _ = await Extractor(embedder).compare(QUESTION, [make_hit(TEXT)])
    beside, notes = await Extractor(embedder, reader=Reader(model, "another@1")).compare(QUESTION, [make_hit(TEXT)])
    assert (beside.short, notes, model.calls) == (alone.short, (), [])


async def test_without_it_the_answer_is_as_without_one_and_says_so(embedder: Embedder, make_hit: MakeHit) -> None:
    broken = reader_of(FakeReranker(errors=[ModelError("the weights are gone")]), embedder)
    alone = await Extractor(embedder).extract(QUESTION, [make_hit(TEXT)], max_sentences=4)
    without = await Extractor(embedder, reader=broken).extract(QUESTION, [make_hit(TEXT)], max_sentences=4)
    assert without.statements == alone.statements
    assert without.degraded == ("answer: sentences chosen without the reader: the weights are gone",)


async def test_it_does_not_read_on_where_nothing_can_be_embedded(embedder: Embedder, make_hit: MakeHit) -> None:
    model = Waiting()
    embedder = FailingSecond(embedder)
    found, notes = await Extractor(embedder, reader=reader_of(model, embedder)).compare(QUESTION, [make_hit(TEXT)])
    await asyncio.sleep(0)
    assert model.was_cancelled
    assert notes == ("answer: sentences chosen by words only: the model is gone",)
    assert {(item.closeness, item.reader_odds) for item in found.short} == {(None, None)}


class Waiting(FakeReranker):
    """Never ends by itself."""

    was_cancelled = False

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return []


class FailingSecond(FakeEmbedder):
    """Embeds the question, and not the units."""

    def __init__(self, other: Embedder) -> None:
        super().__init__(name=other.model.name)
        self._texts = 0

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if role == "document":
            for _ in range(20):  # the reader is to be at work by then
                await asyncio.sleep(0.01)
            raise ModelError("the model is gone")
        return await super().embed(texts, role)
