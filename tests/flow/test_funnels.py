"""How many candidates each profile lets through, stage by stage, on a corpus larger than all of its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragstone import Item, Settings, load_settings, open_engine
from ragstone.core.types import SearchResult
from ragstone.testing.fakes import FakeEmbedder, FakeReranker

NOTICES = [
    Item("notices", str(number), f"notices/{number}", f"Harbour notice {number}: the ferry is late.")
    for number in range(150)
]


def profile(name: str, data_dir: Path) -> Settings:
    embedded = {"store.ledger": "sqlite", "store.vectors": "sqlite", "store.lexical": "sqlite"}
    return load_settings(overrides={"profile": name, "data_dir": data_dir, **embedded}, environment={})


async def search(settings: Settings) -> SearchResult:
    async with open_engine(settings) as engine:
        await engine.ingest_items(NOTICES)
        return await engine.search("harbour notice about the ferry", mode="thorough")


def left(result: SearchResult) -> dict[str, int]:
    return {stage.stage: stage.left for stage in result.trace}


@pytest.mark.req("R-HYB-10")
async def test_ghostwriter_fuses_100_and_100_reranks_50_and_returns_10(
    fake_model: FakeEmbedder, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = FakeReranker()
    monkeypatch.setattr("ragstone.wiring.build_reranker", lambda _: judge)
    settings = profile("ghostwriter", data_dir)
    result = await search(settings)
    stages = left(result)
    assert (stages["dense"], stages["lexical"], stages["read_back"]) == (100, 100, 50)
    assert [len(passages) for _, passages in judge.calls] == [50]
    assert len(result.hits) == 10
    assert (settings.retrieval.fusion, settings.reranking.kind) == ("rrf", "cross_encoder")


@pytest.mark.req("R-HYB-11")
async def test_tulia_merges_10_and_10_and_returns_5(fake_model: FakeEmbedder, data_dir: Path) -> None:
    settings = profile("tulia", data_dir)
    result = await search(settings)
    assert (left(result)["dense"], left(result)["lexical"], len(result.hits)) == (10, 10, 5)
    assert settings.retrieval.fusion == "weighted"


@pytest.mark.req("R-HYB-12")
async def test_kosmos_takes_20_above_the_similarity_threshold(
    fake_model: FakeEmbedder, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = FakeReranker()
    monkeypatch.setattr("ragstone.wiring.build_reranker", lambda _: judge)
    settings = profile("kosmos", data_dir)
    assert settings.retrieval.min_similarity == 0.5
    stages = left(await search(settings))
    assert (stages["dense"], stages["lexical"], stages["read_back"]) == (20, 20, 20)
    assert [len(passages) for _, passages in judge.calls] == [20]
    async with open_engine(settings) as engine:
        far = await engine.search("an unrelated question of somebody", mode="thorough")
    assert left(far)["dense"] == 0


@pytest.mark.req("R-HYB-13")
async def test_rpg_returns_10(fake_model: FakeEmbedder, data_dir: Path) -> None:
    assert len((await search(profile("rpg", data_dir))).hits) == 10


async def test_takaro_fuses_20_and_20_and_returns_5(fake_model: FakeEmbedder, data_dir: Path) -> None:
    result = await search(profile("takaro", data_dir))
    assert (left(result)["dense"], left(result)["lexical"], len(result.hits)) == (20, 20, 5)
