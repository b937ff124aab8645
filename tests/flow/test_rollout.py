"""Flags of the rollout: each phase can be turned off for a tenant, and what is left is pure vector search."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.agents.toolbox import Toolbox
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.settings.flags import PHASES, is_on
from ragstone.testing.fakes import FakeEmbedder

TEXTS = ("The ferry leaves at nine.", "The bus waits at the harbour.", "Dogs travel free of charge.")


class BackwardReranker:
    """Prefers what came last."""

    name = "backward"

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        return [(n + 1) / len(passages) for n in range(len(passages))]

    async def close(self) -> None: ...


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setattr("ragstone.engine.components.build_reranker", lambda _: BackwardReranker())
    retrieval = {"transforms": ["feedback"], "timeout": 30}
    settings = Settings.model_validate({"data_dir": data_dir, "retrieval": retrieval, "cache": {"search_seconds": 0}})
    async with open_engine(settings) as opened:
        await opened.workspace("acme").documents.ingest_items([Item("notes", text, text, text) for text in TEXTS])
        yield opened


async def turn(engine: Engine, **flags: bool) -> None:
    await engine.tenants.set_settings("acme", {f"flags.{name}": value for name, value in flags.items()})


def stages(found: SearchResult) -> set[str]:
    return {stage.stage for stage in found.trace} & {"dense", "lexical", "transform", "rerank"}


@pytest.mark.req("R-CLI-35", "R-CLI-37")
async def test_each_phase_falls_back_to_what_was_there_before_it(engine: Engine) -> None:
    acme, query = engine.workspace("acme"), SearchQuery("ferry", mode="thorough")
    assert PHASES == ("data_layer", "hybrid", "reranking", "tools", "agentic")
    whole = await acme.search(query)
    assert stages(whole) == {"dense", "lexical", "transform", "rerank"}
    for phase in ("data_layer", "hybrid"):
        await turn(engine, **{phase: False})
        plain = await acme.search(query)
        assert (stages(plain), plain.mode, plain.degraded) == ({"dense"}, "balanced", ())
        assert [hit.chunk_id for hit in plain.hits] == [
            hit.chunk_id for hit in (await acme.search(SearchQuery("ferry", arms="lexical"))).hits
        ]
    await turn(engine, reranking=False)
    assert stages(await acme.search(query)) == {"dense", "lexical", "transform"}
    await turn(engine, tools=False, agentic=False)
    assert stages(await acme.search(query)) == stages(whole)


@pytest.mark.req("R-CLI-35")
async def test_tools_and_research_fall_back_on_their_own(engine: Engine) -> None:
    acme, made = engine.workspace("acme"), list[set[str]]()
    search = engine._components.federated_search.search

    async def watch(*arguments: object) -> SearchResult:
        found = await search(*arguments)  # type: ignore[arg-type]
        made.append(stages(found))
        return found

    engine._components.federated_search.search = watch  # type: ignore[method-assign, assignment]
    await turn(engine, tools=False)
    box = Toolbox(acme, ["search_knowledge"])
    assert "ferry" in await box.call("search_knowledge", {"query": "ferry"})
    assert made == [{"dense"}]
    await acme.search("bus")
    assert "lexical" in made.pop()
    made.clear()
    await turn(engine, agentic=False)
    found = await acme.research("ferry and bus", iterations=3)
    assert (found.queries, made) == (("ferry and bus",), [{"dense"}])
    assert found.findings
    made.clear()
    await turn(engine)
    assert len((await acme.research("ferry and bus")).queries) > 1
    assert all("lexical" in one for one in made)


@pytest.mark.req("R-CLI-36")
async def test_a_phase_comes_to_one_tenant_then_to_some_then_to_all(data_dir: Path, fake_model: FakeEmbedder) -> None:
    def settings(hybrid: bool | str) -> Settings:
        return Settings.model_validate({"data_dir": data_dir, "flags": {"hybrid": hybrid}})

    names = [f"t{n}" for n in range(20)]
    async with open_engine(settings(False)) as engine:
        for name in ("demo", *names):
            await engine.tenants.create(name)
        await engine.tenants.set_settings("demo", {"flags.hybrid": True})
        assert [name for name in ("demo", *names) if await engine.workspace(name).is_on("hybrid")] == ["demo"]
    beta: set[str] = set()
    for share in ("25%", "60%"):
        async with open_engine(settings(share)) as engine:
            some = {name for name in names if await engine.workspace(name).is_on("hybrid")}
        assert beta < some < set(names)
        beta = some
    async with open_engine(settings(True)) as engine:
        assert all([await engine.workspace(name).is_on("hybrid") for name in names])
        await engine.tenants.set_settings("t1", {"flags.hybrid": False})
        assert not await engine.workspace("t1").is_on("hybrid")


def test_phases_are_on_unless_said_otherwise_and_other_flags_are_off() -> None:
    assert all(is_on(phase, "id", None, {}) for phase in PHASES)
    assert not is_on("new_ranking", "id", None, {})
    assert is_on("new_ranking", "id", None, {"new_ranking": True})
    with pytest.raises(ValueError, match="a share such as 25%"):
        Settings.model_validate({"flags": {"hybrid": "perhaps"}})
