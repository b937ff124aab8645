"""Local models serve what a question waits for before what is ingested."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ragstone import Item, Settings, open_engine
from ragstone.core.background import is_patient
from ragstone.core.model_types import Embeddings
from ragstone.core.types import Role
from ragstone.testing.fakes import FakeEmbedder


@pytest.fixture
def patience(fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """For each text that the model is asked for, whether it lets questions go first."""
    told: dict[str, bool] = {}
    embed = FakeEmbedder.embed

    async def note(self: FakeEmbedder, texts: Sequence[str], role: Role = "document") -> Embeddings:
        told.update(dict.fromkeys(texts, is_patient()))
        return await embed(self, texts, role)

    monkeypatch.setattr(FakeEmbedder, "embed", note)
    return told


async def test_only_what_nobody_waits_for_lets_questions_go_first(data_dir: Path, patience: dict[str, bool]) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        workspace = engine.workspace("acme")
        ferry = Item("letters", "ferry", "letters/ferry", "The ferry leaves at nine. The pier is long.")
        await workspace.documents.ingest_items([ferry])
        assert patience
        assert all(patience.values())
        patience.clear()
        answer = await workspace.ask("When does the ferry leave?")
        await workspace.verify("The ferry leaves at ten.")
        assert answer.outcome == "answered"
        assert any("leaves at nine" in text for text in patience)  # the sentences that are compared with the question
        assert not any(patience.values())
        patience.clear()
        await workspace.embed(["a text of the caller's own"])
        assert patience == {"a text of the caller's own": True}
