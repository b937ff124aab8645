"""LangChain's own standard tests, and a LangGraph agent over a scripted service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from langgraph.graph import END, StateGraph
from langgraph.graph.message import add_messages
from tests.doubles.openai import OpenAIDouble, Reply, Request, chat_reply, json_reply

from ragstone import Ragstone
from ragstone.agents.agent import asking_node, should_use_tools
from ragstone.agents.toolbox import Toolbox
from ragstone.agents.tools import TOOLS
from ragstone.core.errors import InputError
from ragstone.serve.langchain import RagstoneChat, RagstoneRetriever, langchain_tools, tool_node
from ragstone.settings.tree import LLMSettings

SEARCH = {"type": "function", "function": {"name": "search_knowledge"}}
EXAMPLES: dict[str, dict[str, Any]] = {
    "search_knowledge": {"query": "hooks", "top_k": 2},
    "verify_claim": {"claim": "A hook has to finish within five seconds."},
    "check_text": {"text": "A hook has to finish within five seconds."},
    "research_topic": {"topic": "modules", "depth": "quick"},
    "searchDocs": {"query": "cronjobs", "thoroughness": "fast"},
    "researchTopic": {"topic": "modules", "maxIterations": 1},
    "get_writing_examples": {"topic": "modules"},
    "find_similar_critiques": {"topic": "modules"},
    "get_style_references": {"topic": "modules"},
}


@pytest.fixture(scope="module", autouse=True)
def stone(guide: Path) -> Iterator[Ragstone]:
    with Ragstone(data_dir=guide) as stone:
        Standard.stone = stone
        yield stone


class Standard:
    """What the standard tests ask of whoever runs them."""

    stone: Ragstone
    name = "search_knowledge"

    @property
    def tool_constructor(self) -> BaseTool:
        (tool,) = langchain_tools(Toolbox(self.stone, [self.name]))
        return tool

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return EXAMPLES[self.name]


def _standard_tests() -> Iterator[tuple[str, type]]:
    for name in TOOLS:
        for base in (ToolsUnitTests, ToolsIntegrationTests):
            yield f"Test_{name}_{base.__name__}", type(name, (Standard, base), {"name": name})


@pytest.mark.req("R-TOL-40")
def test_there_are_standard_tests_for_every_tool() -> None:
    assert EXAMPLES.keys() == TOOLS.keys()


globals().update(_standard_tests())


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[RagstoneRetriever]:
        return RagstoneRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"stone": Standard.stone}

    @property
    def retriever_query_example(self) -> str:
        return "how long may a hook take"


def test_a_document_says_where_it_stands(stone: Ragstone) -> None:
    best = RagstoneRetriever(stone=stone, options={"mode": "fast"}).invoke("how long may a hook take", k=1)[0]
    assert best.page_content.endswith("A hook has to finish within five seconds.")
    assert (best.metadata["uri"], best.metadata["section"]) == ("pages/hooks.md", "Modules > Hooks")


async def test_arguments_that_do_not_fit_come_back_as_data(stone: Ragstone) -> None:
    (tool,) = langchain_tools(Toolbox(stone, ["search_knowledge"]))
    answer = json.loads(await tool.ainvoke({"query": "hooks", "top_k": 99}))
    assert answer["error"]["code"] == "invalid_input"


@pytest.mark.parametrize("wrong", [{"query": "hooks", "top_k": 99}, {"quer": 1}, {"query": ""}, {}])
async def test_a_wrong_call_reads_the_same_wherever_it_is_made(stone: Ragstone, wrong: dict[str, Any]) -> None:
    box = Toolbox(stone, ["search_knowledge"])
    (tool,) = langchain_tools(box)
    said = await box.call("search_knowledge", wrong)
    assert tool.invoke(wrong) == said
    assert await tool.ainvoke(wrong) == said


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph(box: Toolbox, model: RagstoneChat) -> Any:
    """Two nodes that share one tool node: tools go back to whoever asked for them."""
    thinking = model.bind_tools(langchain_tools(box))

    def node(name: str) -> Any:
        async def think(state: State) -> dict[str, Any]:
            said = await thinking.ainvoke(state["messages"])
            return {"messages": [said.model_copy(update={"name": name})]}

        return think

    flow = StateGraph(State)
    flow.add_node("tools", tool_node(box))
    for name, following in (("writer", "editor"), ("editor", END)):
        flow.add_node(name, node(name))
        flow.add_conditional_edges(name, lambda state, to=following: should_use_tools(state, to), ["tools", following])
    flow.add_conditional_edges("tools", asking_node, ["writer", "editor"])
    flow.set_entry_point("writer")
    return flow.compile()


def asks_for(name: str, arguments: dict[str, Any], count: int = 1) -> Reply:
    calls = [
        {
            "id": f"{name}{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments | ({"query": f"hooks {n}"} if n else {}))},
        }
        for n in range(count)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json_reply({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


@pytest.mark.req("R-TOL-20", "R-TOL-22", "R-TOL-32", "R-TOL-33")
async def test_a_langgraph_agent_searches_verifies_and_researches(stone: Ragstone) -> None:
    box = Toolbox(stone, ["search_knowledge", "verify_claim", "research_topic"])
    with OpenAIDouble(lambda _: chat_reply("unscripted")) as double:
        double.script.extend(
            [
                asks_for("search_knowledge", EXAMPLES["search_knowledge"]),
                asks_for("verify_claim", EXAMPLES["verify_claim"]),
                chat_reply("A hook has five seconds."),
                asks_for("research_topic", EXAMPLES["research_topic"]),
                chat_reply("Edited."),
            ]
        )
        model = RagstoneChat(settings=LLMSettings(model="m", base_url=double.url, retries=0))
        end = await graph(box, model).ainvoke({"messages": [HumanMessage("Write about hooks")]})
        offered = {tool["function"]["name"] for tool in double.requests[0].body["tools"]}
        roles = [turn["role"] for turn in double.requests[4].body["messages"]]
    assert offered == {"search_knowledge", "verify_claim", "research_topic"}
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant", "assistant", "tool"]
    assert [message.name for message in end["messages"] if isinstance(message, AIMessage)] == [
        "writer",
        "writer",
        "writer",
        "editor",
        "editor",
    ]
    searched, verified, researched = (
        json.loads(message.content) for message in end["messages"] if isinstance(message, ToolMessage)
    )
    assert searched[0].keys() >= {"chunk_text", "source", "date", "relevance_score", "parent_doc_id"}
    assert verified["status"] in ("VERIFIED", "LIKELY")
    assert verified["evidence"][0]["text"] == "A hook has to finish within five seconds."
    assert set(researched) <= {"pages/hooks.md", "pages/cronjobs.md", "pages/bans.md"}
    assert "pages/hooks.md" in researched
    assert end["messages"][-1].content == "Edited."


async def test_what_a_caller_asks_of_the_model_reaches_it() -> None:
    """A reply that ends at once, before a text to stop at, is an empty one and no failure."""
    wanted = {"temperature": 0.0, "response_format": {"type": "json_object"}, "seed": 7}
    with OpenAIDouble(lambda _: chat_reply("")) as double:
        model = RagstoneChat(settings=LLMSettings(model="m", base_url=double.url, retries=0))
        said = await model.ainvoke("Write JSON.", stop=["}"], **wanted)
        assert wanted.items() <= double.requests[0].body.items()
    assert (said.content, double.requests[0].body["stop"]) == ("", ["}"])


@pytest.mark.req("R-TOL-23")
async def test_a_langgraph_agent_that_obeys_a_planted_instruction_gets_five_calls(stone: Ragstone) -> None:
    box = Toolbox(stone, ["search_knowledge"])

    def obey(request: Request) -> Reply:
        answers = [turn for turn in request.body["messages"] if turn["role"] == "tool"]
        return asks_for("search_knowledge", {"query": "hooks"}, 50) if not answers else chat_reply("Done.")

    with OpenAIDouble(obey) as double:
        model = RagstoneChat(settings=LLMSettings(model="m", base_url=double.url, retries=0))
        end = await graph(box, model).ainvoke({"messages": [HumanMessage("?")]})
    answers = [json.loads(message.content) for message in end["messages"] if isinstance(message, ToolMessage)]
    assert sum(isinstance(answer, list) for answer in answers) == 5
    assert sum("error" in answer for answer in answers) == 45


async def answers(box: Toolbox, calls: list[dict[str, Any]], *, blocking: bool) -> list[ToolMessage]:
    """What the tool node says to these calls, with or without async."""

    def ask(_: State) -> dict[str, Any]:
        asked = [call | {"id": str(n)} for n, call in enumerate(calls)]
        return {"messages": [AIMessage("", name="writer", tool_calls=asked)]}

    flow = StateGraph(State)
    flow.add_node("writer", ask)
    flow.add_node("tools", tool_node(box))
    flow.add_edge("writer", "tools")
    flow.set_entry_point("writer")
    start: Any = {"messages": [HumanMessage("?")]}
    app = flow.compile()
    end = await asyncio.to_thread(app.invoke, start) if blocking else await app.ainvoke(start)
    return [message for message in end["messages"] if isinstance(message, ToolMessage)]


@pytest.mark.req("R-TOL-22")
@pytest.mark.parametrize("blocking", [True, False], ids=["invoke", "ainvoke"])
async def test_passages_have_their_packaged_names_in_every_graph(stone: Ragstone, blocking: bool) -> None:
    box = Toolbox(stone, ["search_knowledge"])
    call = {"name": "search_knowledge", "args": {"query": "hooks", "top_k": 1}}
    (message,) = await answers(box, [call], blocking=blocking)
    (passage,) = json.loads(message.text)
    assert list(passage) == ["chunk_text", "source", "date", "relevance_score", "parent_doc_id", "url"]
    assert message.status == "success"


@pytest.mark.req("R-TOL-39")
@pytest.mark.parametrize("blocking", [True, False], ids=["invoke", "ainvoke"])
async def test_a_tool_node_answers_wrong_calls_with_the_error_of_the_toolbox(stone: Ragstone, blocking: bool) -> None:
    box = Toolbox(stone, ["search_knowledge"])
    wrong = [{"name": "nosuch", "args": {"query": "hooks"}}, {"name": "search_knowledge", "args": {"quer": 1}}]
    unknown, unfit = await answers(box, wrong, blocking=blocking)
    for message, call in ((unknown, wrong[0]), (unfit, wrong[1])):
        assert message.text == await box.call(call["name"], call["args"])
        assert json.loads(message.text)["error"]["message"]
        assert (message.name, message.status) == (call["name"], "error")


def test_the_chat_model_works_without_async() -> None:
    with OpenAIDouble(lambda _: chat_reply("Hello.")) as double:
        model = RagstoneChat(settings=LLMSettings(model="m", base_url=double.url, retries=0))
        assert model.invoke("hi").content == "Hello."


async def test_the_chat_model_works_without_async_where_a_loop_runs() -> None:
    with OpenAIDouble(lambda _: chat_reply("Hello.")) as double:
        model = RagstoneChat(settings=LLMSettings(model="m", base_url=double.url, retries=0))
        assert model.invoke("hi").content == "Hello."


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        ("auto", "auto"),
        ("any", "required"),
        (True, "required"),
        ("search_knowledge", SEARCH),
        (SEARCH, SEARCH),
    ],
)
def test_the_model_is_told_where_to_stop_and_which_tool_to_use(stone: Ragstone, choice: Any, sent: Any) -> None:
    with OpenAIDouble(lambda _: chat_reply("Hello.")) as double:
        model = RagstoneChat(settings=LLMSettings(model="m", base_url=double.url, retries=0))
        tools = langchain_tools(Toolbox(stone, ["search_knowledge"]))
        model.bind_tools(tools, tool_choice=choice).invoke("hi", stop=["Observation:"])
        model.bind(stop="Observation:").invoke("hi")
        model.invoke("hi")
    asked, bound, plain = (request.body for request in double.requests)
    assert (asked["stop"], asked.get("tool_choice"), bound["stop"]) == (["Observation:"], sent, ["Observation:"])
    assert plain.keys().isdisjoint({"stop", "tool_choice"})


def test_the_choice_of_a_tool_that_is_not_there_is_refused(stone: Ragstone) -> None:
    model = RagstoneChat(settings=LLMSettings(model="m", base_url="http://127.0.0.1:1/v1", retries=0))
    tools = langchain_tools(Toolbox(stone, ["search_knowledge"]))
    with pytest.raises(InputError, match="there is no tool 'search' to choose"):
        model.bind_tools(tools, tool_choice="search").invoke("hi")
