"""The web as a source of an engine: routed, remembered, cited, and never in the way."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.rest import RestDouble
from tests.doubles.web import Reply, json_reply

from ragstone import Engine, Item, Ragstone, Settings, open_engine
from ragstone.core.errors import InputError, TenantSuspended
from ragstone.core.search import SearchQuery
from ragstone.schemas.search import SearchSchema
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

LETTER = Item("letters", "1", "letters/1", "The ferry leaves the north pier at nine.", title="Ferry")
PAGE = {
    "title": "Harbour news",
    "url": "https://www.harbour.example/today",
    "content": "The ferry is two hours late today because of fog.",
    "publishedDate": "2026-01-31T08:00:00",
}


@pytest.fixture
def searxng() -> Iterator[RestDouble]:
    with RestDouble(lambda _: json_reply({"results": [PAGE]})) as double:
        yield double


def settings(data_dir: Path, searxng: RestDouble, **more: Any) -> Settings:
    web = {"kind": "searxng", "url": f"http://{searxng.host}", "retries": 0, "timeout": 20}
    return Settings(**{"data_dir": data_dir, "web": web, "retrieval": {"routing": "auto"}} | more)


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder, searxng: RestDouble) -> AsyncIterator[Engine]:
    async with open_engine(settings(data_dir, searxng)) as opened:
        await workspace_of(opened).documents.ingest_items([LETTER])
        yield opened


async def test_what_changes_is_asked_of_the_web_and_cited(engine: Engine, searxng: RestDouble) -> None:
    answer = await workspace_of(engine).ask("Is the ferry late today because of fog?")
    assert answer.status == "answered"
    cited = {citation.uri: citation for citation in answer.citations}
    assert cited[PAGE["url"]].quote == PAGE["content"]
    assert cited[PAGE["url"]].site == "harbour.example"
    assert [one.query["q"] for one in searxng.requests] == ["Is the ferry late today because of fog?"]
    streamed = [event async for event in workspace_of(engine).stream("Is the ferry late today because of fog?")]
    assert PAGE["content"] in repr(streamed)


@pytest.mark.req("R-MOD-19")
async def test_what_the_kb_knows_is_not_asked_of_the_web(engine: Engine, searxng: RestDouble) -> None:
    found = await workspace_of(engine).search("when does the ferry leave the north pier")
    assert (found.route, found.web, searxng.requests) == ("retrieve", (), [])
    elsewhere = await workspace_of(engine).search("who won the chess tournament in Reykjavik")
    assert (elsewhere.route, [one.title for one in elsewhere.web]) == ("web", ["Harbour news"])
    assert SearchSchema.of(elsewhere).as_json()["web"] == [
        {
            "title": PAGE["title"],
            "url": PAGE["url"],
            "snippet": PAGE["content"],
            "date": "2026-01-31",
            "provider": "searxng",
        }
    ]


async def test_greetings_are_looked_for_nowhere(engine: Engine, searxng: RestDouble, fake_model: FakeEmbedder) -> None:
    before = len(fake_model.calls)
    found = await workspace_of(engine).search("Hello there!")
    assert (found.route, found.hits, len(fake_model.calls), searxng.requests) == ("none", (), before, [])
    assert (await workspace_of(engine).ask("Thank you!")).status == "no_evidence"


@pytest.mark.req("R-REL-04", "R-MOD-09")
async def test_a_web_that_never_answers_costs_its_own_time_only(
    data_dir: Path, fake_model: FakeEmbedder, searxng: RestDouble, caplog: pytest.LogCaptureFixture
) -> None:
    searxng.faults.append(Reply(hang=True))
    web = {"kind": "searxng", "url": f"http://{searxng.host}", "retries": 0, "timeout": 0.05}
    async with open_engine(settings(data_dir, searxng, web=web)) as engine:
        await workspace_of(engine).documents.ingest_items([LETTER])
        found = await workspace_of(engine).search("ferry times today")
    assert [hit.title for hit in found.hits] == ["Ferry"]
    assert found.web == ()
    assert found.degraded == (f"web: SearXNG at {searxng.host} did not answer within 0.05 s",)
    assert [one for one in caplog.messages if one.startswith("Internet search failed")] != []


@pytest.mark.req("R-REL-05")
async def test_results_outlive_the_engine_and_limits(
    data_dir: Path, fake_model: FakeEmbedder, searxng: RestDouble
) -> None:
    async with open_engine(settings(data_dir, searxng)) as engine:
        await workspace_of(engine).documents.ingest_items([LETTER])
        first = await workspace_of(engine).web("fog")
    searxng.faults.extend([Reply(b"", 429)] * 9)
    async with open_engine(settings(data_dir, searxng)) as engine:
        again = await workspace_of(engine).web("fog")
        assert (again.results, first.cached, again.cached) == (first.results, False, True)
        assert (await engine.workspace("globex").web("fog")).results == ()
        other = await workspace_of(engine).web("storm")
        assert (other.results, other.problem) == ((), f"SearXNG at {searxng.host} is limiting requests (429)")


async def test_a_tenant_goes_with_what_it_has_looked_for(engine: Engine, data_dir: Path, searxng: RestDouble) -> None:
    await engine.workspace("acme").documents.ingest_items([LETTER])
    await engine.workspace("acme").web("a private question")
    await workspace_of(engine).web("fog")
    assert kept(data_dir) == ["a private question", "fog"]
    await engine.tenants.delete("acme")
    assert kept(data_dir) == ["fog"]


async def test_a_tenant_decides_for_itself(engine: Engine, searxng: RestDouble) -> None:
    await engine.workspace("acme").documents.ingest_items([LETTER])
    await engine.tenants.set_settings("acme", {"retrieval.routing": "off"})
    assert (await engine.workspace("acme").search("ferry times today")).web == ()
    assert searxng.requests == []
    asked = await engine.workspace("acme").search(SearchQuery("ferry times today", web=True))
    assert len(asked.web) == 1
    await engine.tenants.suspend("acme")
    with pytest.raises(TenantSuspended):
        await engine.workspace("acme").web("fog")


def kept(data_dir: Path) -> list[str]:
    found = []
    for path in data_dir.glob("tenants/*/ledger.db"):
        with closing(sqlite3.connect(path)) as connection:
            found += [text for (text,) in connection.execute("SELECT query_text FROM web_results")]
    return sorted(found)


def test_a_script_asks_a_fixture(data_dir: Path, tmp_path: Path, fake_model: FakeEmbedder) -> None:
    path = tmp_path / "web.json"
    pages = [{"title": PAGE["title"], "url": PAGE["url"], "snippet": PAGE["content"]}] * 2
    path.write_text(json.dumps({"*": pages}), encoding="utf-8")
    with Ragstone(data_dir=data_dir, web={"kind": "fixture", "path": path}) as stone:
        assert [one.site for one in stone.web("fog", k=5).results] == ["harbour.example"]
        with pytest.raises(InputError, match=r"^k is 21; it must be from 1 to 20$"):
            stone.web("fog", k=21)
    with Ragstone(data_dir=data_dir) as stone, pytest.raises(InputError, match="no web search is set up"):
        stone.web("fog")


def test_the_command_line_shows_pages_under_passages(
    data_dir: Path, tmp_path: Path, fake_model: FakeEmbedder, capsys: pytest.CaptureFixture[str]
) -> None:
    from ragstone.serve.cli.main import main

    path = tmp_path / "web.json"
    page = {"title": PAGE["title"], "url": PAGE["url"], "snippet": PAGE["content"]}
    path.write_text(json.dumps({"*": [page]}), encoding="utf-8")
    (tmp_path / "ragstone.yaml").write_text(f"web: {{kind: fixture, path: {path}}}\n", encoding="utf-8")
    with Ragstone(data_dir=data_dir) as stone:
        stone.ingest_items([LETTER])
    where = ["--data-dir", str(data_dir)]
    assert main(["search", "ferry", "--web", *where]) == 0
    shown = capsys.readouterr().out
    assert shown.index("Ferry") < shown.index("Harbour news") < shown.index(str(PAGE["url"]))
    assert main(["search", "ferry", *where]) == 0
    assert "Harbour news" not in capsys.readouterr().out
