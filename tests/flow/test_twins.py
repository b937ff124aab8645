"""Documents that say the same: each has chunks and vectors of its own, whatever becomes of the others meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.ingest.kit import item

from ragstone import Engine, Settings, open_engine
from ragstone.ingest.embed import WaveEmbedder
from ragstone.stores.ledger.transaction import SqlTransaction
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

TEXT = "The ferry leaves the harbour at nine."


@pytest.fixture(params=["sqlite", "chroma", "qdrant"])
async def engine(request: pytest.FixtureRequest, fake_model: FakeEmbedder, tmp_path: Path) -> AsyncIterator[Engine]:
    settings = {"data_dir": tmp_path / "data", "store": {"vectors": request.param}}
    async with open_engine(Settings.model_validate(settings)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("owner", "step"),
    [(WaveEmbedder, "ensure_current"), (SqlTransaction, "live_contents"), (SqlTransaction, "complete_all")],
    ids=["embedded", "before it is stored", "stored"],
)
async def test_a_document_whose_twin_is_deleted_when_it_has_its_vectors_keeps_them(
    engine: Engine, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, owner: type, step: str
) -> None:
    await workspace_of(engine).documents.ingest_items([item("first", TEXT)])
    (first,) = await workspace_of(engine).documents.list()
    fake_model.calls.clear()
    goes_on = getattr(owner, step)

    async def meanwhile(self: Any, *args: Any) -> Any:
        monkeypatch.setattr(owner, step, goes_on)
        gone = (
            self.delete(first.id)
            if isinstance(self, SqlTransaction)
            else workspace_of(engine).documents.delete(first.id)
        )
        assert await gone
        return await goes_on(self, *args)

    monkeypatch.setattr(owner, step, meanwhile)
    report = await workspace_of(engine).documents.ingest_items([item("second", TEXT)])
    assert (report.added, report.failed, report.degraded) == (1, (), ())
    assert fake_model.calls == []  # it has the vectors of the first
    (second,) = await workspace_of(engine).documents.list()
    assert second.id != first.id
    (hit,) = (await workspace_of(engine).search("ferry harbour nine")).hits
    assert (hit.document_id, hit.text, set(hit.scores) >= {"dense", "lexical"}) == (second.id, TEXT, True)
