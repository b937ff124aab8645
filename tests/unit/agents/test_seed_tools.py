"""What agents of the designs rely on: names of tools, factories, and the limits of what they may ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragstone.agents import toolbox as factories
from ragstone.agents.toolbox import Toolbox
from ragstone.agents.tools import TOOLS
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
