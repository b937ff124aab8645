"""The engine loads the reader for questions only, beside the model it was made for, and names it in receipts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragstone import Item, Ragstone, Settings, open_engine
from ragstone.engine import components
from ragstone.models.weights import reader as weights
from ragstone.testing.fakes import FakeEmbedder, FakeReranker

FERRY = Item("letters", "ferry", "letters/ferry", "The ferry leaves at nine. The pier is long.")


class Closing(FakeReranker):
    """Remembers that it was closed."""

    was_closed = False

    async def close(self) -> None:
        self.was_closed = True


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Closing:
    """The reader of every engine that the test opens."""
    fake = Closing()
    monkeypatch.setattr(components, "build_reader", lambda _: fake)
    return fake


@pytest.fixture
def beside(fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the fake embedding model the one that the reader was made for."""
    monkeypatch.setattr(weights, "BESIDE", fake_model.model.id)


@pytest.mark.usefixtures("beside")
async def test_it_is_loaded_for_answers_only(data_dir: Path, reader: Closing) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        workspace = engine.workspace("acme")
        await workspace.documents.ingest_items([FERRY])
        await engine.warm("acme")
        await workspace.search("When does the ferry leave?")
        assert reader.calls == []
        await engine.warm("acme", answers=True)
        assert len(reader.calls) == 1
        await workspace.ask("When does the ferry leave?")
        assert [question for question, _ in reader.calls[1:]] == ["When does the ferry leave?"]
    assert reader.was_closed


@pytest.mark.usefixtures("fake_model")
async def test_beside_another_embedding_model_nothing_is_loaded(data_dir: Path, reader: Closing) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        workspace = engine.workspace("acme")
        await workspace.documents.ingest_items([FERRY])
        await engine.warm("acme", answers=True)
        answer = await workspace.ask("When does the ferry leave?")
        assert answer.outcome == "answered"
        assert answer.degraded == ()
        assert (await workspace.receipts.make(answer))["models"]["reader"] is None
    assert reader.calls == []


def test_a_receipt_names_it(stone: Ragstone) -> None:
    answer = stone.ask("How long are places held before a booking has to be paid?")
    assert answer.outcome == "answered"
    assert "fifteen minutes" in answer.sentences[0].text
    assert stone.receipt(answer)["models"]["reader"] == "ragstone-reader"
