"""A call that could not be answered in full is spent, but it does not count as answered."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ragstone.agents.results import pack_value
from ragstone.agents.toolbox import Toolbox
from ragstone.agents.tools import TOOLS
from ragstone.core.errors import StoreBusy
from ragstone.core.search import SearchResult
from ragstone.core.types import KnowledgeBase
from ragstone.engine.engine import Engine
from ragstone.query.context import SearchRequest
from ragstone.query.pipeline import SearchPipeline
from ragstone.testing.workspaces import workspace_of

ALL = tuple(TOOLS)
NOTE = "lexical: out of time"
FAILED = {"error": {"code": "search_failed", "message": f"the search could not be completed: {NOTE}", "hint": ""}}
SUBJECT = {name: tool.schema["required"][0] for name, tool in TOOLS.items()}


class Trouble:
    """While it is on, searches find nothing and say so, or fail."""

    def __init__(self) -> None:
        self.on = True
        self.empty = True
        self.error: StoreBusy | None = None
        self._search = SearchPipeline.search

    async def search(
        self, pipeline: SearchPipeline, tenant: str, kb: KnowledgeBase, request: SearchRequest
    ) -> SearchResult:
        if self.on and self.error:
            raise self.error
        found = await self._search(pipeline, tenant, kb, request)
        hits = () if self.empty else found.hits
        return replace(found, hits=hits, degraded=(NOTE,)) if self.on else found


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Trouble:
    made = Trouble()

    async def search(pipeline: SearchPipeline, *arguments: Any) -> SearchResult:
        return await made.search(pipeline, *arguments)

    monkeypatch.setattr(SearchPipeline, "search", search)
    return made


async def called(box: Toolbox, name: str) -> Any:
    return json.loads(await box.call(name, {SUBJECT[name]: "Hooks of the server are quick."}))


@pytest.mark.parametrize("name", ALL)
async def test_what_was_degraded_may_be_asked_again_and_is_spent(engine: Engine, trouble: Trouble, name: str) -> None:
    box = Toolbox(workspace_of(engine), ALL)
    first = await called(box, name)
    assert first == FAILED or NOTE in first["degraded"]
    assert (box.calls, box.run.queries) == (1, [])
    trouble.on = False
    second = await called(box, name)
    assert "error" not in second
    assert (box.calls, len(box.run.queries)) == (2, 1)
    assert await called(box, name) == second
    assert (box.calls, len(box.run.queries)) == (3, 1)


@pytest.mark.parametrize("name", ALL)
async def test_a_tool_that_found_something_says_what_was_degraded(engine: Engine, trouble: Trouble, name: str) -> None:
    trouble.empty = False
    found = await called(Toolbox(workspace_of(engine), ALL), name)
    if found == FAILED:  # no example is marked for this use
        return
    for answer in found if isinstance(found, list) else [found]:
        assert NOTE in answer["degraded"]
    if isinstance(found, list):
        assert {tuple(passage["degraded"]) for passage in pack_value(found)} == {(NOTE,)}


async def test_another_agent_does_not_get_what_was_degraded(engine: Engine, trouble: Trouble) -> None:
    box = Toolbox(workspace_of(engine), ["search_knowledge"])
    assert await called(box, "search_knowledge") == FAILED
    trouble.on = False
    assert len(await called(box.again(), "search_knowledge")) == 5


async def test_a_failed_call_may_be_made_again(engine: Engine, trouble: Trouble) -> None:
    trouble.error = StoreBusy("5 reads have not come back")
    box = Toolbox(workspace_of(engine), ["search_knowledge"])
    assert (await called(box, "search_knowledge"))["error"]["code"] == "store_busy"
    trouble.on = False
    assert len(await called(box, "search_knowledge")) == 5
    assert box.calls == 2


@pytest.mark.req("R-TOL-23")
async def test_five_degraded_calls_are_all_there_is(engine: Engine, trouble: Trouble) -> None:
    box = Toolbox(workspace_of(engine), ["search_knowledge"])
    answers = [await called(box, "search_knowledge") for _ in range(6)]
    assert answers[:5] == [FAILED] * 5
    assert answers[5]["error"]["message"] == "all 5 tool calls of this invocation are used up"


async def test_finding_nothing_while_degraded_does_not_end_the_search(engine: Engine, trouble: Trouble) -> None:
    box = Toolbox(workspace_of(engine), ALL)
    await called(box, "search_knowledge")
    trouble.on = False
    assert "error" not in await called(box, "searchDocs")
