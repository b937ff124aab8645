"""One turn of an agent, which may be interrupted by tools, and the node that runs them for all agents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragstone.agents.agent import DATA, MOST_CALLS_READ, message_of, trim_calls
from ragstone.agents.article.pipeline import Pipeline, remember_invocation
from ragstone.agents.article.state import ArticleState, Record, Update, is_asking
from ragstone.agents.article.team import AgentName, AgentSpec
from ragstone.agents.budget import Invocation
from ragstone.agents.chat import Reply, ToolCall, read_calls
from ragstone.agents.toolbox import Toolbox, find_tool
from ragstone.core.types import Json
from ragstone.schemas.errors import ErrorSchema


async def take_turn(pipeline: Pipeline, state: ArticleState, node: AgentName, prompt: str) -> tuple[Update, str | None]:
    """Have an agent speak; return what changes, and its text, None while it waits for its tools."""
    spec = pipeline.team.agents[node]
    goes_on = is_asking(state, node)
    opening = [] if goes_on else _open_turn(spec, prompt)
    first = len(state["messages"])
    asked = state["invocation"] if goes_on else remember_invocation(node, first, Invocation(), closed=not spec.calls)
    said = [*state["messages"][int(asked["first"]) :], *opening]
    functions = [] if asked["closed"] else [find_tool(name).function for name in spec.tools]
    chat = pipeline.chat(spec)
    reply = await chat.reply(said, functions, temperature=spec.temperature, on_text=pipeline.on_text)
    pipeline.usage += [reply.usage] if reply.usage else []
    if reply.tool_calls and functions:
        return {"messages": [*opening, dict(trim_calls(reply).turn)], "invocation": asked}, None
    return {"messages": [*opening, dict(Reply(reply.text).turn)], "invocation": {}}, reply.text


def _open_turn(spec: AgentSpec, prompt: str) -> list[Record]:
    system = f"{spec.persona}\n\n{DATA}"
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt}]


async def run_tools(pipeline: Pipeline, state: ArticleState) -> Update:
    """Run the tools that the agent has asked for; the state says who goes on."""
    asked: AgentName = state["invocation"]["node"]
    return await call_tools(pipeline, state, asked, read_calls(state["messages"][-1]))


async def call_tools(pipeline: Pipeline, state: ArticleState, node: AgentName, calls: Sequence[ToolCall]) -> Update:
    """Call tools for an agent within its budget; return messages, queries, contexts and verifications to add."""
    spec = pipeline.team.agents[node]
    asked = state["invocation"] or remember_invocation(node, 0, Invocation(), closed=False)
    box = pipeline.toolbox(spec, {**state, "invocation": asked})
    spent = box.calls
    seen = {context["text"] for context in state["retrieved_contexts"]}
    update: Update = {"messages": [], "knowledge_queries": [], "retrieved_contexts": [], "verified_claims": []}
    for call in calls[:MOST_CALLS_READ]:
        value, query = await _call_tool(box, spec, node, call)
        update["messages"].append(dict(message_of(call, value)))
        update["knowledge_queries"].append(query)
        for context in _contexts(query, value):
            if context["text"] not in seen:
                seen.add(context["text"])
                update["retrieved_contexts"].append(context)
        if call.name == "verify_claim" and not query["error"]:
            update["verified_claims"].append({"claim": query["query"], "by": node, **value})
    update["invocation"] = remember_invocation(node, int(asked["first"]), box.invocation, closed=box.calls == spent)
    return update


async def _call_tool(box: Toolbox, spec: AgentSpec, node: str, call: ToolCall) -> tuple[Any, Record]:
    """Call one tool; return its answer, which may be an error, and the record of the call."""
    known = set(box.run.results)
    arguments = dict(call.arguments or {})
    try:
        async with asyncio.timeout(spec.seconds):
            value: Any = await box.value(call.name, arguments)
    except TimeoutError:
        told = f"{call.name} did not answer within {spec.seconds:g} s"
        value = ErrorSchema.of_words("timeout", told, "go on without it").as_json()
    error = str(value["error"]["message"]) if isinstance(value, dict) and "error" in value else ""
    new = next((key for key in box.run.results if key not in known), None)
    kept: Record | None = None
    if new:
        text, confidence = box.run.results[new]
        kept = {"standing": new[0], "call": new[1], "result": json.loads(text), "confidence": confidence}
    query = str(next(iter(arguments.values()), ""))
    reused = not error and new is None
    return value, {
        "node": node, "tool": call.name, "query": query, "reused": reused, "error": error, "kept": kept,
    }  # fmt: skip


def _contexts(query: Record, value: Any) -> list[Record]:
    """Return the passages of a tool's answer with where they are from."""
    named: list[tuple[str, Mapping[str, Json]]] = []
    if isinstance(value, list):
        named = [(str(passage["source"]), passage) for passage in value]
    elif query["tool"] == "research_topic" and not query["error"]:
        named = [(source, finding) for source, found in value.items() if source != "degraded" for finding in found]
    return [
        {
            "node": query["node"],
            "tool": query["tool"],
            "query": query["query"],
            "source": source,
            **{name: passage.get(name) for name in ("text", "date", "url", "relevance")},
            "document_id": passage.get("parent_doc_id"),
        }
        for source, passage in named
    ]
