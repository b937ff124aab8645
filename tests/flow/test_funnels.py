"""How many candidates each profile lets through, stage by stage, on a corpus larger than all of its limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from ragstone import Item, Settings, load_settings, open_engine
from ragstone.core.errors import RemoteError, SettingsError
from ragstone.core.model_types import Message
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.types import Mode
from ragstone.evaluate.metrics import score
from ragstone.settings.retrieval import RerankingSettings, RerankingStage
from ragstone.testing.fakes import FakeEmbedder, FakeLLM, FakeReranker
from ragstone.testing.workspaces import workspace_of

CLIENT = "ragstone.models.llm.client.OpenAILLM"
NOTICES = [
    Item("notices", str(number), f"notices/{number}", f"Harbour notice {number}: the ferry is late.")
    for number in range(150)
]


def profile(name: str, data_dir: Path) -> Settings:
    embedded = {"store.ledger": "sqlite", "store.vectors": "sqlite", "store.lexical": "sqlite"}
    return load_settings(overrides={"profile": name, "data_dir": data_dir, **embedded}, environment={})


async def search(settings: Settings) -> SearchResult:
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(NOTICES)
        return await workspace_of(engine).search(SearchQuery("harbour notice about the ferry", mode="thorough"))


def number_of(text: str) -> int:
    return int(text.split()[2].rstrip(":"))


class ByNumber(FakeReranker):
    """Prefers notices of a high number; those under `least` get less than 0.3. Remembers what it was built for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str | None]] = []
        self.numbers: list[int] = []
        self.least = 0

    def build(self, stage: RerankingStage) -> ByNumber | None:
        self.asked.append((stage.kind, stage.model))
        return None if stage.kind == "none" else self

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        numbers = [number_of(passage) for passage in passages]
        self.numbers += numbers
        return [0.3 + number / 1000 if number >= self.least else number / 1000 for number in numbers]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> ByNumber:
    """The reranker of every engine that the test opens."""
    judge = ByNumber()
    monkeypatch.setattr("ragstone.engine.components.build_reranker", judge.build)
    return judge


def left(result: SearchResult) -> dict[str, int]:
    return {stage.stage: stage.left for stage in result.trace}


@pytest.mark.req("R-HYB-10", "R-RRK-01")
async def test_ghostwriter_fuses_100_and_100_reranks_50_and_returns_10(
    fake_model: FakeEmbedder, data_dir: Path, judge: ByNumber
) -> None:
    settings = profile("ghostwriter", data_dir)
    result = await search(settings)
    stages = left(result)
    assert (stages["dense"], stages["lexical"], stages["read_back"]) == (100, 100, 50)
    assert judge.asked == [("cross_encoder", "cross-encoder/ms-marco-MiniLM-L-12-v2")]
    assert len(judge.numbers) == 50
    assert settings.retrieval.fusion == "rrf"
    assert [number_of(hit.text) for hit in result.hits] == sorted(judge.numbers, reverse=True)[:10]


@pytest.mark.req("R-HYB-11", "R-MOD-20")
async def test_tulia_merges_10_and_10_and_returns_5(fake_model: FakeEmbedder, data_dir: Path) -> None:
    settings = profile("tulia", data_dir)
    result = await search(settings)
    assert (left(result)["dense"], left(result)["lexical"], len(result.hits)) == (10, 10, 5)
    assert settings.retrieval.fusion == "weighted"


@pytest.mark.req("R-HYB-12")
async def test_kosmos_takes_20_above_the_similarity_threshold(
    fake_model: FakeEmbedder, data_dir: Path, judge: ByNumber
) -> None:
    settings = profile("kosmos", data_dir)
    assert settings.retrieval.min_similarity == 0.5
    stages = left(await search(settings))
    assert (stages["dense"], stages["lexical"], stages["read_back"]) == (20, 20, 20)
    assert len(judge.numbers) == 20
    async with open_engine(settings) as engine:
        far = await workspace_of(engine).search(SearchQuery("an unrelated question of somebody", mode="thorough"))
    assert left(far)["dense"] == 0


@pytest.mark.req("R-HYB-13", "R-HYB-29")
async def test_rpg_returns_10(fake_model: FakeEmbedder, data_dir: Path) -> None:
    settings = profile("rpg", data_dir)
    assert len((await search(settings)).hits) == 10
    own = settings.retrieval
    assert (own.fusion, own.dense_weight, own.rrf_k, own.arms) == ("rrf", 0.5, 60, "hybrid")


@pytest.mark.req("R-HYB-25")
async def test_a_tenant_s_setting_falls_back_to_pure_vector_search(fake_model: FakeEmbedder, data_dir: Path) -> None:
    async with open_engine(profile("takaro", data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items(NOTICES)
        await engine.tenants.set_settings("default", {"retrieval.arms": "dense"})
        pure = await workspace_of(engine).search("ferry")
        await engine.tenants.set_settings("default", {})
        both = await workspace_of(engine).search("ferry")
    assert ("lexical" in left(pure), "dense" in left(pure)) == (False, True)
    assert {"lexical", "dense"} <= left(both).keys()


def last_one_first(count: int) -> str:
    return json.dumps([{"id": n, "points": 10 * n / count} for n in range(count, 0, -1)])


@pytest.mark.req("R-RRK-05", "R-RRK-07", "R-MOD-03")
async def test_takaro_fuses_20_and_20_has_an_llm_rank_20_and_returns_5(
    fake_model: FakeEmbedder, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = FakeLLM([last_one_first(20)])
    asked: list[tuple[str, str | None]] = []
    monkeypatch.setattr(CLIENT, lambda name, settings, **_: asked.append((name, settings.base_url)) or llm)
    result = await search(profile("takaro", data_dir))
    assert (left(result)["dense"], left(result)["lexical"], len(result.hits)) == (20, 20, 5)
    assert [hit.scores["rerank"] for hit in result.hits] == [1.0, 0.95, 0.9, 0.85, 0.8]
    assert [hit.score for hit in result.hits] == [1.0, 0.95, 0.9, 0.85, 0.8]
    assert len(json.loads(llm.requests[0][1].content)["passages"]) == 20
    assert result.degraded == ()
    assert asked == [("meta-llama/llama-3.1-8b-instruct", "https://openrouter.ai/api/v1")]


class KnowsBetter(FakeLLM):
    """Gives a passage points by the number of its notice."""

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        passages = json.loads(messages[1].content)["passages"]
        return json.dumps([{"id": each["id"], "points": number_of(each["text"]) / 15} for each in passages])


@pytest.mark.req("R-TST-07")
async def test_an_llm_that_knows_better_improves_what_takaro_returns(
    fake_model: FakeEmbedder, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CLIENT, lambda *_, **__: KnowsBetter())
    async with open_engine(profile("takaro", data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items(NOTICES)
        rankings = {
            mode: [hit.uri for hit in (await workspace_of(engine).search(SearchQuery("late ferry", mode=mode))).hits]
            for mode in get_args(Mode)
        }
    grades = {item.uri: int(item.external_id) for item in NOTICES}
    quality = {mode: score(ranking, grades, ("ndcg@5",))["ndcg@5"] for mode, ranking in rankings.items()}
    assert quality["fast"] == quality["balanced"] < quality["thorough"]


@pytest.mark.req("R-RRK-10", "R-RRK-06", "R-MOD-02", "R-REL-22")
async def test_takaro_keeps_the_fused_order_when_the_llm_fails_or_is_not_asked(
    fake_model: FakeEmbedder, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = FakeLLM(["I liked passage 3 best", RemoteError("no answer")])
    monkeypatch.setattr(CLIENT, lambda *_, **__: llm)
    async with open_engine(profile("takaro", data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items(NOTICES)
        found = {
            mode: await workspace_of(engine).search(SearchQuery("late ferry", mode=mode)) for mode in get_args(Mode)
        }
        again = await workspace_of(engine).search(SearchQuery("late ferry", mode="thorough"))
    orders = [[hit.chunk_id for hit in result.hits] for result in (*found.values(), again)]
    assert all(order == orders[0] for order in orders)
    assert len(orders[0]) == 5
    assert len(llm.requests) == 2
    assert found["balanced"].degraded == ()
    assert found["thorough"].degraded == ("rerank: fake gave no ranking: the reply holds no list",)
    assert again.degraded == ("rerank: no answer",)


@pytest.mark.req("R-RRK-02")
@pytest.mark.parametrize("least", [0, 120])
async def test_kosmos_keeps_10_of_those_that_score_at_least_03(
    fake_model: FakeEmbedder, data_dir: Path, judge: ByNumber, least: int
) -> None:
    judge.least = least
    result = await search(profile("kosmos", data_dir))
    assert judge.asked == [("cross_encoder", "cross-encoder/ms-marco-MiniLM-L-6-v2")]
    kept = [number for number in sorted(judge.numbers, reverse=True) if number >= least]
    assert 0 < len(kept[:10]) < len(judge.numbers) == 20
    assert [number_of(hit.text) for hit in result.hits] == kept[:10]


@pytest.mark.req("R-RRK-12", "R-FUT-23")
async def test_rpg_reranks_nothing_until_a_cross_encoder_is_set(
    fake_model: FakeEmbedder, data_dir: Path, judge: ByNumber
) -> None:
    rpg = profile("rpg", data_dir)
    async with open_engine(rpg) as engine:
        await workspace_of(engine).documents.ingest_items(NOTICES)
        plain = await workspace_of(engine).search(SearchQuery("ferry", mode="thorough"))
    assert ([kind for kind, _ in judge.asked], judge.numbers, "rerank" in left(plain)) == (["none"], [], False)
    reranking = RerankingSettings(kind="cross_encoder")
    async with open_engine(rpg.model_copy(update={"reranking": reranking})) as engine:
        reranked = await workspace_of(engine).search(SearchQuery("ferry", mode="thorough"))
    assert [number_of(hit.text) for hit in reranked.hits] == sorted(judge.numbers, reverse=True)[:10]


@pytest.mark.parametrize(
    ("name", "kind", "model", "candidates", "threshold", "k"),
    [
        ("ghostwriter", "cross_encoder", "cross-encoder/ms-marco-MiniLM-L-12-v2", 50, 0.0, 10),
        ("kosmos", "cross_encoder", "cross-encoder/ms-marco-MiniLM-L-6-v2", 20, 0.3, 10),
        ("takaro", "llm", "meta-llama/llama-3.1-8b-instruct", 20, 0.0, 5),
        ("tulia", "none", None, 50, 0.0, 5),
        ("rpg", "none", None, 50, 0.0, 10),
        ("default", "none", None, 50, 0.0, 10),
    ],
)
def test_every_profile_has_its_reranker(
    name: str, kind: str, model: str | None, candidates: int, threshold: float, k: int, tmp_path: Path
) -> None:
    settings = profile(name, tmp_path)
    own = settings.reranking
    assert (own.kind, own.model, own.candidates, own.threshold) == (kind, model, candidates, threshold)
    assert (settings.retrieval.k, own.then.kind) == (k, "none")


def test_an_llm_reranker_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"neither reranking\.model nor llm\.model"):
        open_engine(Settings(data_dir=tmp_path, reranking=RerankingSettings(kind="llm")))
