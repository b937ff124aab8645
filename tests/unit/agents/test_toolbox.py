from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ragstone import Ragstone, SearchQuery, Workspace
from ragstone.agents import budget as budget_module
from ragstone.agents.arguments import VerifyClaim
from ragstone.agents.budget import Budget, Run
from ragstone.agents.roles import ROLES
from ragstone.agents.toolbox import Toolbox, createResearchTopicTool, createSearchDocsTool, docs_toolbox
from ragstone.agents.tools import TOOLS
from ragstone.core.errors import InputError
from ragstone.core.types import Item, KnowledgeBase
from ragstone.engine.engine import Engine, open_engine
from ragstone.query.context import SearchRequest
from ragstone.query.pipeline import SearchPipeline
from ragstone.settings.tree import Settings
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

ALL = tuple(TOOLS)


async def called(box: Toolbox, name: str, **arguments: Any) -> Any:
    return json.loads(await box.call(name, arguments))


@pytest.mark.req("R-TOL-01")
async def test_search_knowledge_answers_in_the_shape_that_agents_know(engine: Engine) -> None:
    found = await called(Toolbox(workspace_of(engine), ALL), "search_knowledge", query="release of hooks", top_k=2)
    assert [list(item) for item in found] == [["text", "source", "date", "url", "relevance", "parent_doc_id"]] * 2
    mail = found[0]
    assert (mail["text"], mail["source"], mail["date"], mail["url"]) == (
        "The release of hooks moved to May.",
        "docs",
        "2026-01-02T00:00:00+00:00",
        "https://mail.example/1",
    )
    assert found[1]["url"] is None
    assert (await workspace_of(engine).documents.get(mail["parent_doc_id"])).uri == "mail/1"


@pytest.mark.req("R-TOL-02")
async def test_search_knowledge_keeps_to_a_source_type(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ALL, budget=Budget(calls=9, low_confidence=0))
    mails = await called(box, "search_knowledge", query="hooks", source_type="emails")
    assert [item["text"] for item in mails] == ["The release of hooks moved to May."]
    for kind in ("papers", "rss", "web"):
        assert await called(box, "search_knowledge", query="hooks", source_type=kind) == []
    assert len(await called(box, "search_knowledge", query="hooks", source_type="all")) == 5


@pytest.mark.req("R-TOL-09")
async def test_search_docs_answers_in_the_shape_that_agents_know(engine: Engine) -> None:
    found = await called(
        Toolbox(workspace_of(engine), ALL), "searchDocs", query="five seconds", thoroughness="fast", limit=1
    )
    assert list(found) == ["results"]
    (result,) = found["results"]
    assert list(result) == ["content", "source", "section", "relevance"]
    assert (result["source"], result["section"]) == ("docs/hooks.md", "Modules > Hooks")
    assert result["relevance"].removesuffix("%").isdigit()


@pytest.mark.req("R-TOL-06", "R-TOL-07")
async def test_research_topic_groups_by_source_and_refuses_other_depths(engine: Engine) -> None:
    found = await called(Toolbox(workspace_of(engine), ALL), "research_topic", topic="hooks", depth="quick")
    assert list(found) == ["docs"]
    assert list(found["docs"][0]) == ["text", "date", "url", "relevance"]
    assert len(found["docs"]) == 5
    refused = await called(Toolbox(workspace_of(engine), ALL), "research_topic", topic="hooks", depth="huge")
    assert refused["error"]["code"] == "invalid_input"
    assert "'quick', 'medium' or 'deep'" in refused["error"]["message"]


@pytest.mark.req("R-TOL-10", "R-TOL-11")
async def test_research_in_docs(engine: Engine) -> None:
    found = await called(Toolbox(workspace_of(engine), ALL), "researchTopic", topic="hooks", maxIterations=1)
    assert list(found) == ["topic", "searchesPerformed", "findings"]
    assert found["searchesPerformed"] >= 3
    assert list(found["findings"][0]) == ["content", "source", "section"]
    schema = TOOLS["researchTopic"].schema["properties"]["maxIterations"]
    assert (schema["minimum"], schema["maximum"], schema["default"]) == (1, 5, 3)
    for wrong in (0, 6):
        refused = await called(Toolbox(workspace_of(engine), ALL), "researchTopic", topic="hooks", maxIterations=wrong)
        assert refused["error"]["code"] == "invalid_input"


@pytest.mark.req("R-TOL-12", "R-TOL-18")
async def test_every_search_of_a_research_is_thorough(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    search = SearchPipeline.search

    async def watched(self: SearchPipeline, tenant: str, kb: KnowledgeBase, request: SearchRequest) -> Any:
        modes.append(request.mode)
        return await search(self, tenant, kb, request)

    monkeypatch.setattr(SearchPipeline, "search", watched)
    await called(Toolbox(workspace_of(engine), ALL), "researchTopic", topic="hooks")
    assert len(modes) > 2
    assert set(modes) == {"thorough"}


@pytest.mark.req("R-TOL-29")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("get_writing_examples", "Hooks, told well, are little stories."),
        ("find_similar_critiques", "The piece on hooks lacked sources."),
        ("get_style_references", "Write about hooks in short sentences."),
    ],
)
async def test_examples_come_from_documents_that_are_marked_as_such(engine: Engine, name: str, text: str) -> None:
    found = await called(Toolbox(workspace_of(engine), ALL), name, topic="hooks")
    assert [item["text"] for item in found] == [text]


@pytest.mark.req("R-TOL-23", "R-REL-15")
async def test_the_sixth_call_is_refused(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ALL)
    answers = [await called(box, "search_knowledge", query=f"hooks {n}") for n in range(7)]
    assert [isinstance(answer, list) for answer in answers] == [True] * 5 + [False] * 2
    assert answers[5]["error"] == {
        "code": "call_refused",
        "message": "all 5 tool calls of this invocation are used up",
        "hint": "answer with what was found, and say what is missing",
    }


@pytest.mark.req("R-TOL-24", "R-REL-16")
async def test_the_same_query_is_not_retrieved_twice(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Toolbox(workspace_of(engine), ALL)
    first = await called(box, "search_knowledge", query="Hooks of the server")
    assert isinstance(first, list)
    monkeypatch.setattr(Workspace, "search", None)  # a second search could only fail
    assert await called(box, "search_knowledge", query=" hooks of  the SERVER ") == first
    assert box.calls == 2, "a loop is cut off all the same"
    assert "error" in await called(box, "search_knowledge", query="hooks of another server")


async def test_an_earlier_result_is_not_given_again_when_it_no_longer_holds(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ["search_knowledge"])
    (mail,) = await called(box, "search_knowledge", query="release of hooks", source_type="emails")
    await workspace_of(engine).documents.delete(mail["parent_doc_id"])
    again = await called(box, "search_knowledge", query="release of hooks", source_type="emails")
    assert again["error"]["code"] == "call_refused"
    assert again["error"]["message"].endswith("is not known yet or no longer holds")


@pytest.mark.req("R-TOL-25")
async def test_searching_stops_when_nothing_found_is_about_the_query(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ALL)
    assert isinstance(await called(box, "search_knowledge", query="sourdough bread recipe"), list)
    stopped = await called(box, "search_knowledge", query="hooks")
    assert "'sourdough bread recipe' found nothing" in stopped["error"]["message"]
    assert (await called(box, "researchTopic", topic="hooks"))["error"]["code"] == "call_refused"
    assert isinstance(await called(box.again(), "search_knowledge", query="hooks"), list)


@pytest.mark.req("R-TOL-34", "R-REL-19")
async def test_agents_of_one_run_share_what_was_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Toolbox(workspace_of(engine), ["search_knowledge"])
    first = await called(writer, "search_knowledge", query="hooks")
    critic = writer.again(["search_knowledge", "verify_claim"])
    stranger = Toolbox(workspace_of(engine), ["search_knowledge"], kb="other", run=writer.run)
    monkeypatch.setattr(Workspace, "search", None)
    assert await called(critic, "search_knowledge", query="hooks") == first
    assert (writer.calls, critic.calls) == (1, 1)
    assert "error" in await called(stranger, "search_knowledge", query="hooks")


async def test_a_run_forgets_what_was_deleted(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ["search_knowledge"])
    (mail,) = await called(box, "search_knowledge", query="release of hooks", source_type="emails")
    await workspace_of(engine).documents.delete(mail["parent_doc_id"])
    assert await called(box.again(), "search_knowledge", query="release of hooks", source_type="emails") == []


async def test_a_run_tells_a_suspended_tenant_nothing(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ["search_knowledge"])
    assert isinstance(await called(box, "search_knowledge", query="hooks"), list)
    await engine.tenants.suspend("default")
    refused = await called(box.again(), "search_knowledge", query="hooks")
    assert refused["error"]["code"] == "tenant_suspended"


async def test_a_run_that_engines_share_keeps_their_tenants_apart(engine: Engine, data_dir: Path) -> None:
    run = Run()
    await called(Toolbox(workspace_of(engine), ["search_knowledge"], run=run), "search_knowledge", query="hooks")
    async with open_engine(Settings(data_dir=data_dir, tenant="rival")) as other:
        await workspace_of(other).documents.ingest_items([Item("docs", "1", "1", "Other hooks.")])
        box = Toolbox(workspace_of(other), ["search_knowledge"], run=run)
        assert [item["text"] for item in await called(box, "search_knowledge", query="hooks")] == ["Other hooks."]


async def test_a_run_keeps_modes_apart(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    modes, search = [], Workspace.search

    async def watched(self: Workspace, query: SearchQuery) -> Any:
        modes.append(query.mode)
        return await search(self, query)

    monkeypatch.setattr(Workspace, "search", watched)
    run = Run()
    for mode in ("fast", "thorough", "fast"):
        await called(Toolbox(workspace_of(engine), ALL, mode=mode, run=run), "search_knowledge", query="hooks")
    assert modes == ["fast", "thorough"]


async def test_what_an_agent_changes_is_not_given_to_the_next(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ["search_knowledge"])
    for _ in range(3):
        found = await box.again().value("search_knowledge", {"query": "hooks"})
        assert "poison" not in found[0]["text"]
        found[0]["text"] = "poison"
    assert len(box.run.results) == 1


def test_a_run_has_an_end_to_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "MOST_RESULTS", 2)
    run = Run()
    for call in ("one", "two", "three"):
        run.keep("here", call, [call], 0.5)
    assert run.queries == ["two", "three"]
    assert run.find("here", "one") is None
    assert run.find("here", "two") == (["two"], 0.5)
    assert run.find("elsewhere", "two") is None


@pytest.mark.req("R-TOL-39")
@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("search_knowledge", {}, "invalid_input"),
        ("search_knowledge", {"query": ""}, "invalid_input"),
        ("search_knowledge", {"query": " \x00 "}, "invalid_input"),
        ("search_knowledge", {"query": "x" * 9000}, "invalid_input"),
        ("search_knowledge", {"query": "x", "top_k": 21}, "invalid_input"),
        ("search_knowledge", {"query": "x", "tenant": "other"}, "invalid_input"),
        ("search_knowledge", {"query": "x", "source_type": "secrets"}, "invalid_input"),
        ("search_knowledge", {"query": ["x"]}, "invalid_input"),
        ("delete_everything", {}, "call_refused"),
    ],
)
async def test_what_cannot_be_called_comes_back_as_data(
    engine: Engine, name: str, arguments: dict[str, Any], code: str
) -> None:
    answer = await called(Toolbox(workspace_of(engine), ALL), name, **arguments)
    assert list(answer) == ["error"]
    assert list(answer["error"]) == ["code", "message", "hint"]
    assert answer["error"]["code"] == code


@pytest.mark.req("R-TOL-39")
async def test_errors_of_the_engine_and_mistakes_of_ours_come_back_as_data(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    missing = await called(Toolbox(workspace_of(engine), ALL, kb="nowhere"), "search_knowledge", query="hooks")
    assert missing["error"]["code"] == "not_found"

    async def broken(self: Workspace, query: SearchQuery) -> Any:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Workspace, "search", broken)
    failed = await called(Toolbox(workspace_of(engine), ALL), "search_knowledge", query="hooks")
    assert failed == {
        "error": {"code": "internal", "message": "search_knowledge failed unexpectedly", "hint": "go on without it"}
    }
    assert "secret detail" in caplog.text


async def test_a_lone_surrogate_is_no_reason_to_fail(engine: Engine) -> None:
    answer = await Toolbox(workspace_of(engine), ALL).call("search_knowledge", {"query": "hooks \ud800"})
    answer.encode()


@pytest.mark.req("R-TOL-16", "R-TOL-28")
async def test_an_agent_can_only_call_what_is_bound_to_it(engine: Engine) -> None:
    box = docs_toolbox(workspace_of(engine))
    refused = await called(box, "researchTopic", topic="hooks")
    assert refused["error"]["message"] == "no tool 'researchTopic' is bound to this agent"
    assert (await called(docs_toolbox(workspace_of(engine), research=True), "researchTopic", topic="hooks"))["findings"]


async def test_a_permission_that_was_not_given_is_missing(engine: Engine) -> None:
    answer = await called(Toolbox(workspace_of(engine), ALL, permissions=()), "search_knowledge", query="hooks")
    assert answer["error"]["message"] == "search_knowledge needs the permission 'read'"


@pytest.mark.req("R-TOL-15")
async def test_factories_make_tools_of_one_kb(engine: Engine) -> None:
    search = createSearchDocsTool(workspace_of(engine), "default")
    assert [item["source"] for item in json.loads(await search("five seconds", limit=1))["results"]] == [
        "docs/hooks.md"
    ]
    research = createResearchTopicTool(workspace_of(engine), kb="elsewhere")
    assert json.loads(await research(topic="hooks"))["error"]["code"] == "not_found"


@pytest.mark.req("R-TOL-40")
async def test_plain_callables_carry_name_description_and_schema(engine: Engine) -> None:
    search = Toolbox(workspace_of(engine), ALL).callables()["search_knowledge"]
    assert search.__name__ == "search_knowledge"
    assert search.__doc__ == TOOLS["search_knowledge"].description
    assert search.schema == {  # type: ignore[attr-defined]
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "What to look for, in natural language."},
            "source_type": {
                "type": "string",
                "enum": ["all", "emails", "papers", "rss", "web", "files", "docs", "uploads", "corpus", "database"],
                "default": "all",
                "description": "Search only one kind of source, or all: docs are Git repositories and files of "
                "documentation, rss are feeds and Hacker News.",
            },
            "top_k": {
                "type": "integer",
                "minimum": 1,
                "maximum": 20,
                "default": 5,
                "description": "How many passages to return.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert json.loads(await search("hooks", "all", 1))[0]["relevance"]
    assert "takes at most 3" in await search("hooks", "all", 1, 2)


@pytest.mark.req("R-TOL-26")
def test_what_each_agent_of_the_article_pipeline_has() -> None:
    own = {"get_writing_examples", "find_similar_critiques", "get_style_references"}
    table = {name: (set(role.tools) - own, role.frequency, role.priority) for name, role in ROLES.items()}
    assert table == {
        "Writer": ({"search_knowledge"}, "medium", "low"),
        "FactResearcher": ({"research_topic"}, "high", "high"),
        "FactVerification": ({"verify_claim", "search_knowledge"}, "high", "critical"),
        "Editor": ({"search_knowledge"}, "low", "low"),
        "StyleEnforcer": ({"search_knowledge"}, "low", "low"),
        "Critic": ({"verify_claim", "search_knowledge"}, "medium", "medium"),
    }


@pytest.mark.req("R-TOL-18")
@pytest.mark.parametrize(
    ("role", "mode"), [("FactVerification", "thorough"), ("Writer", "balanced"), ("Editor", "fast")]
)
async def test_each_role_searches_as_thoroughly_as_it_needs(engine: Engine, role: str, mode: str) -> None:
    workspace = workspace_of(engine)
    assert await called(Toolbox.for_role(workspace, role), "search_knowledge", query="hooks")
    await engine._components.search_log.flush()
    (logged,) = await workspace.feedback.searches()
    assert logged.mode == mode


@pytest.mark.req("R-TOL-29")
async def test_a_box_for_a_role(engine: Engine) -> None:
    own = {name: [tool.name for tool in Toolbox.for_role(workspace_of(engine), name).tools] for name in ROLES}
    assert own["Writer"] == ["search_knowledge", "get_writing_examples"]
    assert own["Critic"] == ["verify_claim", "search_knowledge", "find_similar_critiques"]
    assert own["StyleEnforcer"] == ["search_knowledge", "get_style_references"]
    assert (ROLES["FactResearcher"].mode, ROLES["Editor"].mode) == ("thorough", "fast")
    with pytest.raises(InputError, match="there is no role 'Poet'"):
        Toolbox.for_role(workspace_of(engine), "Poet")
    with pytest.raises(InputError, match="there is no tool 'write'"):
        Toolbox(workspace_of(engine), ["write"])


async def test_an_engine_alone_cannot_be_called_without_async(engine: Engine) -> None:
    with pytest.raises(InputError, match="no loop of its own"):
        Toolbox(workspace_of(engine), ALL).call_blocking("search_knowledge", {"query": "hooks"})


def test_a_box_on_a_ragstone_is_called_without_async_and_from_another_loop(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    with Ragstone(data_dir=data_dir) as stone:
        box = Toolbox(stone, ["verify_claim"])
        blocking = json.loads(box.call_blocking("verify_claim", {"claim": "Hooks run within five seconds."}))
        awaited = asyncio.run(box.again().value("verify_claim", {"claim": "Hooks run within five seconds."}))
        lacking = json.loads(box.call_blocking("verify_claim"))
    assert blocking["error"]["code"] == "not_found", "there is no kb yet"
    assert awaited == blocking
    assert lacking["error"]["code"] == "invalid_input"


async def test_a_claim_may_be_checked_after_searching_has_stopped(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ALL, budget=Budget(low_confidence=1.0))
    await called(box, "search_knowledge", query="volcanoes on Io")
    refused = await called(box, "search_knowledge", query="hooks")
    assert "searching has stopped" in refused["error"]["message"]
    for tool, argument in (("verify_claim", "claim"), ("check_text", "text")):
        assert "error" not in await called(box, tool, **{argument: "A hook runs within five seconds."})


def test_arguments_stay_as_they_were_checked() -> None:
    checked = VerifyClaim(claim="A hook runs within five seconds.")
    with pytest.raises(ValidationError, match="frozen"):
        checked.claim = "another"  # type: ignore[misc]


@pytest.mark.req("R-TOL-03")
async def test_verify_claim_answers_in_the_shape_that_agents_know(engine: Engine) -> None:
    verdict = await called(Toolbox(workspace_of(engine), ALL), "verify_claim", claim="A hook runs within five seconds.")
    assert list(verdict) == ["status", "confidence", "stance", "evidence"]
    assert 1 <= len(verdict["evidence"]) <= 3
    assert list(verdict["evidence"][0]) == ["text", "source", "relevance", "stance", "failed"]
    assert verdict["evidence"][0]["text"] == "A hook runs within five seconds."


async def test_claims_that_nothing_supports_do_not_stop_the_next_check(engine: Engine) -> None:
    box = Toolbox(workspace_of(engine), ALL)
    for claim in ("Bread is baked at night.", "Whales are fish.", "A hook runs within five seconds."):
        assert "status" in await called(box, "verify_claim", claim=claim)


@pytest.mark.parametrize("name", ["search_knowledge", "verify_claim", "research_topic", "searchDocs"])
async def test_another_tenant_finds_nothing_of_this_one(engine: Engine, name: str) -> None:
    (subject,) = TOOLS[name].schema["required"]
    answer = await called(Toolbox(engine.workspace("rival"), ALL), name, **{subject: "hooks"})
    assert answer["error"]["code"] == "not_found"


@pytest.mark.req("R-TOL-40")
def test_the_tools_work_where_langchain_is_not_installed() -> None:
    code = (
        "import sys; sys.modules.update(langchain_core=None, langgraph=None, mcp=None)\n"
        "import ragstone.agents.toolbox, ragstone.agents.agent, ragstone.serve.mcp.server\n"
        "try:\n    import ragstone.serve.langchain\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == 'LangChain is not installed: pip install "ragstone[agents]"\n'
