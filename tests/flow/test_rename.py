"""A kb gets another name, or goes, while something is at work on it: nothing is split, doubled or lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.errors import CollectionExists, StoreBusy, StoreError, StoreFull
from ragstone.core.model_types import Embeddings
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import Question
from ragstone.ingest import embed as belt
from ragstone.stores.control.audit import SqlAuditTrail
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

Meanwhile = Callable[[], Awaitable[object]]


@pytest.fixture
async def engine(tmp_path: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=tmp_path / "data")) as opened:
        await workspace_of(opened).documents.ingest_items([_item("seed")], kb="a")
        yield opened


def _item(name: str) -> Item:
    return Item("test", name, name, f"What the {name} says of mills.")


async def _counts(engine: Engine) -> dict[str, int]:
    return {
        kb.name: (await workspace_of(engine).knowledge_bases.stats(kb=kb.name)).documents
        for kb in await workspace_of(engine).knowledge_bases.list()
    }


def while_embedding(model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, do: Meanwhile, call: int = 1) -> None:
    """Have something done while the model is at work for the nth time."""
    original = model.embed
    left = call

    async def embed(*args: object) -> Embeddings:
        nonlocal left
        left -= 1
        if left == 0:
            await do()
        return await original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(model, "embed", embed)


async def test_what_is_ingested_while_its_kb_is_renamed_goes_nowhere_else(
    engine: Engine, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(belt, "WAVE_CHUNKS", 1)
    while_embedding(fake_model, monkeypatch, lambda: workspace_of(engine).knowledge_bases.rename("a", "b"), call=5)
    report = await workspace_of(engine).documents.ingest_items([_item(f"{n}") for n in range(40)], kb="a")
    counts = await _counts(engine)
    assert counts.keys() == {"b"}
    assert 0 < report.added == counts["b"] - 1 < 40
    assert report.added + len(report.failed) == 40
    assert {one.code for one in report.failed} == {"kb_gone"}
    assert report.failed[0].error.endswith(": knowledge base 'a' was renamed to 'b' meanwhile")
    assert report.failed[0].remedy == Remedy(Action.INGEST_AGAIN, kb="b")


async def test_what_is_ingested_while_its_kb_is_replaced_does_not_go_into_the_new_one(
    engine: Engine, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def replaced() -> None:
        await workspace_of(engine).knowledge_bases.delete("a")
        async with engine._components.ledger.transaction("default") as tx:
            await tx.open_kb("a")

    while_embedding(fake_model, monkeypatch, replaced)
    report = await workspace_of(engine).documents.ingest_items([_item("one"), _item("two")], kb="a")
    said = "knowledge base 'a' was deleted meanwhile", Remedy(Action.INGEST_AGAIN, kb="a")
    assert [(one.error.split(": ", 1)[1], one.remedy) for one in report.failed] == [said] * 2
    assert await _counts(engine) == {"a": 0}


async def test_a_worker_does_not_make_a_kb_anew_that_was_deleted(
    engine: Engine, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace_of(engine).documents.upload(b"An upload about mills.", "mill.txt", kb="a")
    while_embedding(fake_model, monkeypatch, lambda: workspace_of(engine).knowledge_bases.delete("a"))
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)
    assert await _counts(engine) == {}
    assert await workspace_of(engine).jobs.list() == []


async def _turns(engine: Engine) -> dict[str, int]:
    return {kb: len(await workspace_of(engine).conversations.turns("c", kb=kb)) for kb in ("a", "b")}


def failing(monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, error: Exception, call: int = 1) -> None:
    """Have something fail from its nth call on."""
    original = getattr(holder, name)
    left = call

    def fail(*args: Any) -> Any:
        nonlocal left
        left -= 1
        if left <= 0:
            raise error
        return original(*args)

    monkeypatch.setattr(holder, name, fail)


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("ragstone.stores.ledger.writes.rename_kb", StoreBusy("1 running jobs")),
        ("ragstone.stores.control.audit.SqlAuditTrail.record", StoreFull("no space left")),
    ],
)
async def test_a_renaming_that_is_refused_changes_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, place: str, error: StoreError
) -> None:
    await workspace_of(engine).ask(Question("What of mills?", conversation="c", kb="a"))
    with monkeypatch.context() as patch:

        def refuse(*_: Any) -> None:
            raise error

        patch.setattr(place, refuse)
        with pytest.raises(type(error), match=str(error)):
            await workspace_of(engine).knowledge_bases.rename("a", "b")
    assert await _counts(engine) == {"a": 1}
    assert await _turns(engine) == {"a": 1, "b": 0}
    await workspace_of(engine).knowledge_bases.rename("a", "b")
    assert await _turns(engine) == {"a": 0, "b": 1}


async def test_once_a_kb_has_its_new_name_nothing_fails(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await workspace_of(engine).ask(Question("What of mills?", conversation="c", kb="a"))
    failing(monkeypatch, SqlAuditTrail, "record", StoreFull("no room for the record"), call=2)
    failing(monkeypatch, engine._components.file_upkeep._files, "all_of", StoreFull("no room for files"))
    assert (await workspace_of(engine).knowledge_bases.rename("a", "b")).name == "b"
    assert await _turns(engine) == {"a": 0, "b": 1}
    assert "no room for the record" in caplog.text
    assert "no room for files" in caplog.text


async def test_a_name_that_is_taken_leaves_both_as_they_are(engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items([_item("other")], kb="b")
    for kb in ("a", "b"):
        await workspace_of(engine).ask(Question("What of mills?", conversation="c", kb=kb))
    with pytest.raises(CollectionExists, match="there is a knowledge base 'b' already"):
        await workspace_of(engine).knowledge_bases.rename("a", "b")
    assert await _turns(engine) == {"a": 1, "b": 1}
    assert await _counts(engine) == {"a": 1, "b": 1}


async def test_what_is_gone_stays_gone_when_it_cannot_be_recorded(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "mill.txt").write_text("A mill.")
    await workspace_of(engine).documents.ingest(folder, kb="a")
    (folder / "mill.txt").unlink()
    failing(monkeypatch, SqlAuditTrail, "record", StoreFull("no room for the record"))
    assert (await workspace_of(engine).documents.ingest(folder, kb="a")).removed == 1
    assert "no room for the record" in caplog.text
