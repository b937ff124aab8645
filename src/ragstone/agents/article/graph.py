"""The graph of the pipeline: which node follows which, and how one that wants tools gets them and goes on."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langgraph.graph import END, StateGraph

from ragstone.agents.agent import should_use_tools
from ragstone.agents.article.nodes import criticize, edit, enforce_style, research, validate_voice, write
from ragstone.agents.article.panel import hold_vote
from ragstone.agents.article.pipeline import Pipeline, next_node
from ragstone.agents.article.saver import RunSaver
from ragstone.agents.article.state import ArticleState, Update
from ragstone.agents.article.turns import run_tools
from ragstone.agents.article.verification import verify_facts
from ragstone.core.agents.articles import GraphName

Work = Callable[[Pipeline, ArticleState], Awaitable[Update]]
OnNode = Callable[[str, str], None]
"""Hears of each node when it begins (`started`) and when its work is done, before it is saved (`done`)."""
NODES: Mapping[str, Work] = {
    "research": research,
    "writer": write,
    "voice_validate": validate_voice,
    "editor": edit,
    "style_enforce": enforce_style,
    "critic": criticize,
    "fact_verify": verify_facts,
    "quality_gate": hold_vote,
}
ORDER: Mapping[GraphName, tuple[str, ...]] = {"full": tuple(NODES), "writer": ("research", "writer", "editor")}
ASKING = frozenset({"research", "writer", "editor", "style_enforce", "critic", "fact_verify"})
"""The nodes that may be offered tools."""
TOOLS = "tools"


def build_graph(pipeline: Pipeline, name: GraphName, saver: RunSaver, tell: OnNode) -> Any:
    """Return the compiled graph of a run."""
    order = ORDER[name]
    flow = StateGraph(ArticleState)
    for node in order:
        flow.add_node(node, _observe(pipeline, node, NODES[node], tell))
    flow.add_node(TOOLS, _observe(pipeline, TOOLS, run_tools, tell))
    flow.set_entry_point(order[0])
    for node, following in zip(order, (*order[1:], END), strict=True):
        if node in ASKING:
            flow.add_conditional_edges(node, _route(node, following), _targets(node, following, order))
        else:
            flow.add_edge(node, following)
    flow.add_conditional_edges(TOOLS, next_node, [node for node in order if node in ASKING])
    return flow.compile(checkpointer=saver)


def _route(node: str, following: str) -> Callable[[ArticleState], str]:
    """Return the choice of the node after `node`: its tools, the one in line, or the way of a correction."""

    def choose(state: ArticleState) -> str:
        after = following
        if state["stage"] == "revise" and node in ("editor", "fact_verify"):
            after = "fact_verify" if node == "editor" else "editor"
        return should_use_tools(state, after) if state["invocation"] else after

    return choose


def _targets(node: str, following: str, order: tuple[str, ...]) -> list[str]:
    back = {"editor": "fact_verify", "fact_verify": "editor"}.get(node)
    return [TOOLS, following, *([back] if back in order else [])]


def _observe(pipeline: Pipeline, name: str, work: Work, tell: OnNode) -> Any:
    """Return a node that tells of its work, has the tenant charged for it, and notes its time and cost."""

    async def node(state: ArticleState) -> Update:
        tell(name, "started")
        pipeline.usage.clear()
        started = time.perf_counter()
        async with pipeline.workspace.articles.paying():
            update = await work(pipeline, state)
        step = {
            "node": name,
            "seconds": round(time.perf_counter() - started, 3),
            "tokens_read": sum(usage.read for usage in pipeline.usage),
            "tokens_written": sum(usage.written for usage in pipeline.usage),
            "usd": sum(usage.usd for usage in pipeline.usage),
        }
        tell(name, "done")
        return {**update, "steps": [step]}

    return node
