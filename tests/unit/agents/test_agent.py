from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.doubles.openai import OpenAIDouble, Request, chat_reply, json_reply

from ragstone import SearchQuery, Workspace
from ragstone.agents.agent import Agent, asking_node, should_use_tools
from ragstone.agents.chat import OpenAIChat, Reply, ToolCall, Turn
from ragstone.agents.toolbox import Toolbox
from ragstone.core.errors import InputError, RemoteError
from ragstone.engine.engine import Engine
from ragstone.settings.tree import LLMSettings
from ragstone.testing.workspaces import workspace_of


@dataclass
class Scripted:
    """A model that says what it was told to say; keeps what it was given."""

    replies: list[Reply]
    seen: list[tuple[list[Turn], list[Mapping[str, Any]], float]] = field(default_factory=list)

    async def reply(
        self, turns: Sequence[Turn], tools: Sequence[Mapping[str, Any]] = (), *, temperature: float = 0.7
    ) -> Reply:
        self.seen.append((list(turns), list(tools), temperature))
        return self.replies.pop(0)


class Obedient:
    """A model that does what a passage told it: call the tool, again and again, fifty calls at a time."""

    def __init__(self) -> None:
        self.asked = 0

    async def reply(
        self, turns: Sequence[Turn], tools: Sequence[Mapping[str, Any]] = (), *, temperature: float = 0.7
    ) -> Reply:
        self.asked += 1
        calls = [search(f"hooks {self.asked} {n}") for n in range(50)]
        return Reply(f"turn {self.asked}", tuple(calls))


def search(query: str, **more: Any) -> ToolCall:
    return ToolCall(f"call {query}", "search_knowledge", {"query": query, **more})


@pytest.mark.req("R-TOL-31")
async def test_a_call_without_tools_goes_to_the_provider_of_the_agents_model() -> None:
    with OpenAIDouble(lambda _: chat_reply("First.")) as first, OpenAIDouble(lambda _: chat_reply("Second.")) as second:
        chats = [
            OpenAIChat(LLMSettings(model=name, base_url=double.url, retries=0))
            for name, double in (("llama-3.3-70b-versatile", first), ("gpt-4o", second))
        ]
        said = [await Agent(chat).call_llm("Hi") for chat in chats]
        said.append(await Agent(chats[1], "You write.").call_llm("Hi", "Be short.", temperature=0.1))
        for chat in chats:
            await chat.close()
    assert said == ["First.", "Second.", "Second."]
    bodies = [request.body for request in (*first.requests, *second.requests)]
    assert [(body["model"], body["temperature"], "tools" in body) for body in bodies] == [
        ("llama-3.3-70b-versatile", 0.7, False),
        ("gpt-4o", 0.7, False),
        ("gpt-4o", 0.1, False),
    ]
    assert bodies[0]["messages"] == [{"role": "user", "content": "Hi"}]
    assert bodies[2]["messages"][0] == {"role": "system", "content": "You write.\n\nBe short."}


@pytest.mark.req("R-REL-18")
async def test_an_agent_that_has_nothing_to_look_up_is_offered_no_tool_and_gets_none(engine: Engine) -> None:
    for stage in ("VoiceValidate", "QualityGate"):
        with pytest.raises(InputError, match=f"there is no role '{stage}'"):
            Toolbox.for_role(workspace_of(engine), stage)
    model = Scripted([Reply("", (search("hooks"),)), Reply("Good enough.")])
    answer = await Agent(model).call_llm_with_tools("Judge this.", Toolbox(workspace_of(engine), ()))
    assert [tools for _, tools, _ in model.seen] == [[], []]
    (refused,) = answer["tool_results"]
    assert refused["result"]["error"]["code"] == "call_refused"
    assert answer["response"].text == "Good enough."


@pytest.mark.req("R-TOL-31")
async def test_a_model_can_be_called_without_tools() -> None:
    model = Scripted([Reply("Hello.")])
    agent = Agent(model, persona="You write.")
    assert await agent.call_llm("Say hello", "Be short.", temperature=0.1) == "Hello."
    assert model.seen == [
        ([{"role": "system", "content": "You write.\n\nBe short."}, {"role": "user", "content": "Say hello"}], [], 0.1)
    ]
    await Agent(bare := Scripted([Reply("x")])).call_llm("Hi")
    assert bare.seen == [([{"role": "user", "content": "Hi"}], [], 0.7)]


@pytest.mark.req("R-TOL-21", "R-TOL-30")
async def test_nothing_is_fetched_unless_the_model_asks(engine: Engine) -> None:
    model = Scripted([Reply("I know that.")])
    box = Toolbox(workspace_of(engine), ["search_knowledge"])
    answer = await Agent(model).call_llm_with_tools("What is a hook?", box)
    assert answer == {"response": Reply("I know that."), "tool_results": []}
    assert box.calls == 0
    ((turns, tools, _),) = model.seen
    assert [turn["role"] for turn in turns] == ["system", "user"]
    assert [tool["function"]["name"] for tool in tools] == ["search_knowledge"]


@pytest.mark.req("R-TOL-38")
async def test_after_a_result_a_model_may_ask_for_more_or_go_on_without_it(engine: Engine) -> None:
    first, second = search("release of hooks", top_k=1), search("hooks of the server", top_k=1)
    model = Scripted([Reply("", (first,)), Reply("", (second,)), Reply("I leave that out.")])
    answer = await Agent(model).call_llm_with_tools("When?", Toolbox(workspace_of(engine), ["search_knowledge"]))
    assert [result["arguments"]["query"] for result in answer["tool_results"]] == [
        "release of hooks",
        "hooks of the server",
    ]
    # Each time the model is offered the tools again, and what it says in the end is left as it is.
    assert [len(tools) for _, tools, _ in model.seen] == [1, 1, 1]
    assert answer["response"] == Reply("I leave that out.")


@pytest.mark.req("R-TOL-22", "R-TOL-30", "R-TOL-38", "R-ANS-11")
async def test_tools_are_run_and_their_results_go_back_to_the_model(engine: Engine) -> None:
    model = Scripted([Reply("", (search("release of hooks", top_k=1),)), Reply("In May.")])
    answer = await Agent(model).call_llm_with_tools("When?", Toolbox(workspace_of(engine), ["search_knowledge"]))
    assert answer["response"].text == "In May."
    (result,) = answer["tool_results"]
    assert (result["tool"], result["arguments"]) == ("search_knowledge", {"query": "release of hooks", "top_k": 1})
    assert result["result"][0]["text"] == "The release of hooks moved to May."
    *_, asked, told = model.seen[1][0]
    assert asked["tool_calls"][0]["function"]["name"] == "search_knowledge"
    assert (told["role"], told["tool_call_id"]) == ("tool", "call release of hooks")
    (item,) = json.loads(told["content"])
    assert {"chunk_text", "source", "date", "relevance_score", "parent_doc_id"} <= item.keys()
    assert item["chunk_text"] == "The release of hooks moved to May."


async def test_the_model_may_ask_for_more_until_its_budget_is_spent(engine: Engine) -> None:
    asks = [Reply("", (search(f"hooks {n}"),)) for n in range(7)]
    model = Scripted([*asks, Reply("Enough.")])
    answer = await Agent(model).call_llm_with_tools("?", Toolbox(workspace_of(engine), ["search_knowledge"]))
    assert ["error" in one["result"] for one in answer["tool_results"]] == [False] * 5 + [True]
    # The reply that could spend nothing was answered once more without tools, and had to be the last.
    assert [bool(tools) for _, tools, _ in model.seen] == [True] * 6 + [False]
    assert answer["response"].tool_calls == ()


@pytest.mark.req("R-TOL-23")
async def test_a_model_that_obeys_a_planted_instruction_gets_five_calls(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    real = Workspace.search

    async def counted(self: Workspace, query: SearchQuery) -> Any:
        made.append(query.text)
        return await real(self, query)

    monkeypatch.setattr(Workspace, "search", counted)
    model = Obedient()
    answer = await Agent(model).call_llm_with_tools("?", Toolbox(workspace_of(engine), ["search_knowledge"]))
    assert len(made) == 5
    assert model.asked == 3
    assert sum("error" not in one["result"] for one in answer["tool_results"]) == 5


async def test_a_call_of_a_tool_that_is_not_bound_or_cannot_be_read_comes_back_as_data(engine: Engine) -> None:
    calls = (ToolCall("1", "verify_claim", {"claim": "x"}), ToolCall("2", "search_knowledge", None))
    model = Scripted([Reply("", calls), Reply("So be it.")])
    answer = await Agent(model).call_llm_with_tools("?", Toolbox(workspace_of(engine), ["search_knowledge"]))
    assert [one["result"]["error"]["code"] for one in answer["tool_results"]] == ["call_refused", "invalid_input"]


@dataclass
class Message:
    tool_calls: list[str]
    name: str | None = None


@pytest.mark.req("R-TOL-32", "R-TOL-33")
def test_routes_of_a_graph() -> None:
    asking, plain = Message(["call"], "critic"), Message([])
    assert should_use_tools({"messages": [plain, asking]}) == "tools"
    assert should_use_tools({"messages": [asking, plain]}) == "editor"
    assert should_use_tools({"messages": [object()]}, "publisher") == "publisher"
    assert asking_node({"messages": [Message(["c"], "writer"), asking, plain]}) == "critic"
    with pytest.raises(ValueError, match="no message of the state asked for a tool"):
        asking_node({"messages": [plain]})


def tool_reply(*calls: tuple[str, str]) -> Any:
    wire = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": wire}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json_reply({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


def settings(double: OpenAIDouble) -> LLMSettings:
    return LLMSettings(model="m", base_url=double.url, retries=0)


async def test_the_openai_client_sends_tools_and_reads_calls() -> None:
    with OpenAIDouble(lambda _: chat_reply("done")) as double:
        deep = '{"query": ' * 100_000
        double.script.append(tool_reply(("search_knowledge", '{"query": "x"}'), ("other", "not json"), ("other", deep)))
        chat = OpenAIChat(settings(double))
        tool = {"type": "function", "function": {"name": "search_knowledge", "parameters": {}}}
        reply = await chat.reply([{"role": "user", "content": "hi"}], [tool], temperature=0.2)
        unread = ToolCall("c1", "other", None), ToolCall("c2", "other", None)
        assert reply == Reply("", (ToolCall("c0", "search_knowledge", {"query": "x"}), *unread))
        body = double.requests[0].body
        assert (body["tools"], body["temperature"], body["max_tokens"]) == ([tool], 0.2, 800)
        assert await chat.reply([{"role": "user", "content": "hi"}]) == Reply("done")
        assert "tools" not in double.requests[1].body
        await chat.close()


@pytest.mark.parametrize("reply", [chat_reply(""), json_reply({"choices": []}), json_reply({}, 500)])
async def test_a_reply_that_is_none_is_an_error(reply: Any) -> None:
    def answer(_: Request) -> Any:
        return reply

    with OpenAIDouble(answer) as double:
        chat = OpenAIChat(settings(double))
        with pytest.raises(RemoteError, match=r"^m: 127\.0\.0\.1"):
            await chat.reply([{"role": "user", "content": "hi"}])
        await chat.close()


def test_without_a_model_there_is_no_chat() -> None:
    with pytest.raises(RemoteError, match="no chat model is configured"):
        OpenAIChat(LLMSettings())
