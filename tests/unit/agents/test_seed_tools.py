"""What agents of the designs rely on: names of tools, factories, and the limits of what they may ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragstone import SearchQuery, Workspace
from ragstone.agents import toolbox as factories
from ragstone.agents.toolbox import Toolbox
from ragstone.agents.tools import TOOLS
from ragstone.core.search import SearchResult
from ragstone.core.types import Mode
from ragstone.engine.engine import Engine
from ragstone.testing.workspaces import workspace_of


@pytest.mark.req("R-TOL-17")
async def test_the_factories_of_a_kb_still_make_tools_and_one_tool_took_the_place_of_another(engine: Engine) -> None:
    tool = factories.createSearchDocsTool(workspace_of(engine), "default")
    assert tool.__name__ == "searchDocs"
    assert "searchTakaroDocs" not in TOOLS
    # As agents call it: one query, by place or by name, and JSON text comes back.
    for answer in (await tool("hooks of the server"), await tool(query="cronjobs")):
        assert list(json.loads(answer)) == ["results"]
    assert factories.createSearchDocsTool is factories.create_search_docs_tool
    assert factories.createResearchTopicTool is factories.create_research_topic_tool


@pytest.mark.req("R-MOD-06")
@pytest.mark.parametrize(("limit", "given"), [(None, 5), (1, 1), (20, 6)])
async def test_a_limit_is_from_1_to_20_and_5_when_nobody_says(engine: Engine, limit: int | None, given: int) -> None:
    arguments = {"query": "hooks"} if limit is None else {"query": "hooks", "limit": limit}
    found = json.loads(await Toolbox(workspace_of(engine), ["searchDocs"]).call("searchDocs", arguments))
    assert len(found["results"]) == given


@pytest.mark.req("R-MOD-06")
@pytest.mark.parametrize("limit", [0, 21, -1, "many", None])
async def test_another_limit_is_refused(engine: Engine, limit: Any) -> None:
    asked = {"query": "hooks", "limit": limit}
    found = json.loads(await Toolbox(workspace_of(engine), ["searchDocs"]).call("searchDocs", asked))
    assert found["error"]["code"] == "invalid_input"


@pytest.mark.parametrize(
    ("asked", "role", "searched"),
    [
        ({"thoroughness": "fast"}, "thorough", "fast"),
        ({}, "thorough", "thorough"),
        ({"thoroughness": "fast"}, None, "fast"),
    ],
)
async def test_search_docs_is_as_thorough_as_it_is_asked_or_as_the_role_is(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, asked: dict[str, str], role: Mode | None, searched: Mode
) -> None:
    modes = []
    search = Workspace.search

    async def noted(self: Workspace, query: SearchQuery) -> SearchResult:
        modes.append((query.mode, query.k))
        return await search(self, query)

    monkeypatch.setattr(Workspace, "search", noted)
    box = Toolbox(workspace_of(engine), ["searchDocs"], mode=role)
    await box.call("searchDocs", {"query": "hooks", "limit": 2, **asked})
    assert modes == [(searched, 2)]


@pytest.mark.parametrize(
    ("tool", "argument", "least", "most", "usual"),
    [
        ("search_knowledge", "top_k", 1, 20, 5),
        ("searchDocs", "limit", 1, 20, 5),
        ("researchTopic", "maxIterations", 1, 5, 3),
    ],
)
def test_numbers_that_an_agent_may_give(tool: str, argument: str, least: int, most: int, usual: int) -> None:
    schema = TOOLS[tool].schema["properties"][argument]
    assert (schema["minimum"], schema["maximum"], schema["default"]) == (least, most, usual)


def test_no_text_that_an_agent_gives_is_empty_but_any_length_above_is_taken() -> None:
    shortest = {
        name: {key: value["minLength"] for key, value in tool.schema["properties"].items() if "minLength" in value}
        for name, tool in TOOLS.items()
    }
    assert all(shortest.values())
    assert {length for lengths in shortest.values() for length in lengths.values()} == {1}
