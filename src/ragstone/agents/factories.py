"""Tools for agents that read product documentation, bound to one knowledge base.

Research is opt-in: an agent has it only when its configuration makes it with `createResearchTopicTool`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ragstone.agents.budget import Run
from ragstone.agents.toolbox import Toolbox
from ragstone.blocking import Ragstone
from ragstone.engine import Engine

DocsTool = Callable[..., Awaitable[str]]


def create_search_docs_tool(engine: Engine | Ragstone, kb: str | None = None, **options: Any) -> DocsTool:
    """`searchDocs(query, thoroughness?, limit?)` over one kb."""
    return _only("searchDocs", engine, kb, **options)


def create_research_topic_tool(engine: Engine | Ragstone, kb: str | None = None, **options: Any) -> DocsTool:
    """`researchTopic(topic, maxIterations?)` over one kb."""
    return _only("researchTopic", engine, kb, **options)


def docs_toolbox(
    engine: Engine | Ragstone,
    kb: str | None = None,
    *,
    research: bool = False,
    run: Run | None = None,
    **options: Any,
) -> Toolbox:
    """Both tools under one budget; `researchTopic` only when it is asked for."""
    tools = ("searchDocs", "researchTopic") if research else ("searchDocs",)
    return Toolbox(engine, tools, kb=kb, run=run, **options)


def _only(name: str, engine: Engine | Ragstone, kb: str | None, **options: Any) -> DocsTool:
    return Toolbox(engine, [name], kb=kb, **options).callables()[name]


# The names by which the agents that these tools were made for know them.
createSearchDocsTool = create_search_docs_tool  # noqa: N816
createResearchTopicTool = create_research_topic_tool  # noqa: N816
