"""A kb is moved to another model while it is searched and written to.

`RAGSTONE_REEMBED_CHUNKS=5000 pytest tests/flow/test_reembed.py -s` is the long run.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ragstone import Engine, Item, SearchResult, Settings, open_engine
from ragstone.core.errors import ModelError, ModelMismatch
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import SearchQuery
from ragstone.settings.tree import EmbeddingSettings
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

CHUNKS = int(os.environ.get("RAGSTONE_REEMBED_CHUNKS", "200"))
WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu", "pe", "ri") for b in ("ban", "dor", "fel", "gim", "hux")]
AFTER_THE_FLIP = 5
"""Writes that must still go well once the new model is live."""
CLOSE = 2e-3
"""More than a vector loses as float16, less than two models agree by chance."""


@cache
def model(name: str) -> FakeEmbedder:
    return FakeEmbedder(name=name)


@pytest.fixture(autouse=True)
def _models_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda chosen: model(chosen.model))


def settings_of(folder: Path, name: str = "old") -> Settings:
    return Settings(data_dir=folder, embedding=EmbeddingSettings(model=name))


def text_of(name: str, revision: int) -> str:
    choose = random.Random(f"{name} {revision}")
    return f"The {name}x{revision} says {' '.join(choose.choices(WORDS, k=9))}."


def item_of(name: str, revision: int) -> Item:
    return Item("test", name, f"test/{name}", text_of(name, revision))


@dataclass
class Traffic:
    """Searches and writes that go on until they are told to stop."""

    engine: Engine
    live: dict[str, int]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    searches: int = 0
    writes: int = 0
    models: list[str] = field(default_factory=list)
    """Of which model each search's scores were, in order."""

    async def search(self) -> None:
        choose = random.Random(1)
        while not self.stop.is_set():
            query = " ".join(choose.choices(WORDS, k=3))
            result = await workspace_of(self.engine).search(SearchQuery(query, k=5, arms="dense"))
            assert result.degraded == ()
            assert len(result.hits) == 5
            fitting = [name for name in ("old", "new") if await fits(result, name)]
            assert len(fitting) == 1, f"the scores of {query!r} are of {fitting or 'no single model'}"
            self.models.append(fitting[0])
            self.searches += 1

    async def write(self) -> None:
        choose = random.Random(2)
        while not self.stop.is_set():
            name = choose.choice([*sorted(self.live)[:50], f"n{self.writes}", f"m{self.writes}"])
            if name in self.live and choose.random() < 0.3:
                document = (await workspace_of(self.engine).documents.list(where={"external_id": name}))[0]
                assert await workspace_of(self.engine).documents.delete(document.id)
                del self.live[name]
            else:
                revision = self.live.get(name, 0) + 1
                report = await workspace_of(self.engine).documents.ingest_items([item_of(name, revision)])
                assert report.added + report.updated == 1
                self.live[name] = revision
            self.writes += 1


async def fits(result: SearchResult, name: str) -> bool:
    embedder = model(name)
    query = (await embedder.embed([result.query], "query")).vectors[0]
    rows = (await embedder.embed([hit.text for hit in result.hits])).vectors
    return bool(np.allclose(rows @ query, [hit.scores["dense"] for hit in result.hits], atol=CLOSE))


@pytest.mark.req("R-EMB-22", "R-EMB-28")
async def test_searches_and_writes_go_on_while_a_kb_is_moved(data_dir: Path) -> None:
    live = {f"d{number}": 1 for number in range(CHUNKS)}
    async with open_engine(settings_of(data_dir)) as engine, open_engine(settings_of(data_dir)) as mover:
        await workspace_of(engine).documents.ingest_items([item_of(name, 1) for name in live])
        traffic = Traffic(engine, live)
        going = [asyncio.create_task(traffic.search()), asyncio.create_task(traffic.write())]
        report = await workspace_of(mover).embeddings.reembed(
            "new", force=True
        )  # which of two fakes finds better is chance
        assert report.outcome == "promoted"
        written = traffic.writes
        while traffic.writes < written + AFTER_THE_FLIP or traffic.models[-1] != "new":
            await asyncio.wait(going, timeout=0.05)
            assert not any(task.done() for task in going), await asyncio.gather(*going)
        traffic.stop.set()
        await asyncio.gather(*going)
        first = traffic.models.index("new")
        assert traffic.models == ["old"] * first + ["new"] * (len(traffic.models) - first)
        assert first > 0
        await workspace_of(mover).embeddings.reembed("new")
        await check_contents(engine, live)


async def check_contents(engine: Engine, live: dict[str, int]) -> None:
    """Everything that was acknowledged is there, whole, and found by meaning."""
    stats = await workspace_of(engine).knowledge_bases.stats()
    assert (stats.documents, stats.unembedded, stats.model) == (len(live), 0, "new@1")
    spaces = await workspace_of(engine).embeddings.spaces()
    assert [(one.space.model, one.space.state) for one in spaces] == [("old@1", "retired"), ("new@1", "live")]
    assert spaces[1].vectors == spaces[1].chunks == len(live)
    for name, revision in sample(sorted(live.items())):
        best = (await workspace_of(engine).search(SearchQuery(text_of(name, revision), k=1, arms="dense"))).hits[0]
        assert best.text == text_of(name, revision)


def sample(entries: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    return random.Random(3).sample(entries, min(40, len(entries)))


@pytest.mark.req("R-EMB-27")
async def test_a_model_that_nobody_chose_for_the_kb_is_refused_with_the_command_that_repairs_it(data_dir: Path) -> None:
    async with open_engine(settings_of(data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items([item_of("a", 1)])
    async with open_engine(settings_of(data_dir, "new")) as engine:
        with pytest.raises(ModelMismatch) as caught:
            await workspace_of(engine).documents.ingest_items([item_of("b", 1)])
        assert caught.value.remedy == Remedy(Action.REEMBED, model="new", kb="default", current_model="old")
        assert (await workspace_of(engine).embeddings.reembed()).outcome == "promoted"
        assert (await workspace_of(engine).documents.ingest_items([item_of("a", 1), item_of("b", 1)])).added == 1


@pytest.mark.req("R-TEN-17")
async def test_a_tenant_whose_name_looks_like_a_version_is_left_alone(data_dir: Path) -> None:
    async with open_engine(settings_of(data_dir)) as engine:
        for tenant in ("acme", "acme_v2", "acme_old"):
            await engine.workspace(tenant).documents.ingest_items([item_of(tenant, 1)])
        before = [await engine.workspace(tenant).embeddings.spaces() for tenant in ("acme_v2", "acme_old")]
        await engine.workspace("acme").embeddings.reembed("new")
        await engine.workspace("acme").embeddings.clean(retired=True)
        assert [await engine.workspace(tenant).embeddings.spaces() for tenant in ("acme_v2", "acme_old")] == before
        for tenant in ("acme", "acme_v2", "acme_old"):
            hits = (await engine.workspace(tenant).search(SearchQuery("says", k=10))).hits
            assert [hit.text for hit in hits] == [text_of(tenant, 1)]


async def test_a_worker_fills_what_was_stored_while_the_model_was_away(data_dir: Path) -> None:
    async with open_engine(settings_of(data_dir, "away")) as engine:
        await workspace_of(engine).documents.ingest_items([item_of("a", 1)])
        model("away").errors = [ModelError("the model fell over")]
        await workspace_of(engine).documents.ingest_items([item_of("b", 1)])
        assert (await workspace_of(engine).knowledge_bases.stats()).unembedded == 1
        await engine._components.maintenance.maintain("default")
        assert (await workspace_of(engine).knowledge_bases.stats()).unembedded == 0
        assert len((await workspace_of(engine).search(SearchQuery("says", arms="dense"))).hits) == 2
