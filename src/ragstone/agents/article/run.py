"""Writes an article, or goes on with one from where its process ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from ragstone.agents.article.pipeline import Pipeline, choose_model
from ragstone.agents.article.state import ArticleState, Record, new_state
from ragstone.agents.article.team import Team, load_team
from ragstone.agents.chat import OnText
from ragstone.core.agents.articles import (
    ArticleClaim,
    ArticleRun,
    ArticleStatus,
    GraphName,
    KnowledgeQuery,
    NodeStep,
    PanelVote,
    WrittenArticle,
)
from ragstone.core.answers import Citation
from ragstone.core.errors import LeaseLost, RagstoneError, SettingsError
from ragstone.engine.workspace import Workspace
from ragstone.settings.tree import Settings

MOST_STEPS = 400
"""Turns of all nodes together, tools included."""
OnNode = Callable[[str, str], None]


async def write_article(
    workspace: Workspace,
    topic: str,
    *,
    graph: GraphName = "full",
    kb: str | None = None,
    on_node: OnNode | None = None,
    on_text: OnText | None = None,
) -> ArticleRun:
    """Write an article on a topic of the knowledge base; return the completed run with it."""
    require_setup(workspace.settings)
    run = await workspace.articles.start(topic, graph=graph, kb=kb)
    return await resume_article(workspace, run.id, on_node=on_node, on_text=on_text)


async def resume_article(
    workspace: Workspace, run_id: str, *, on_node: OnNode | None = None, on_text: OnText | None = None
) -> ArticleRun:
    """Go on with a run from its last checkpoint; return it with its article."""
    run = await workspace.articles.get(run_id)
    if run.article is not None:
        return run
    team = require_setup(workspace.settings)
    token = await workspace.articles.take(run_id)
    pipeline = Pipeline(workspace, team, run.kb, on_text=on_text)
    try:
        state = await _run_graph(pipeline, run, token, on_node or (lambda _node, _event: None))
        article = read_article(run, state)
        await workspace.articles.finish(run_id, token, article)
    except LeaseLost:
        raise
    except Exception as error:
        said = str(error) if isinstance(error, RagstoneError) else "it failed unexpectedly"
        await workspace.articles.finish(run_id, token, None, error=said)
        raise
    finally:
        await pipeline.close()
    return replace(run, status="completed", error="", article=article)


async def _run_graph(pipeline: Pipeline, run: ArticleRun, token: int, tell: OnNode) -> ArticleState:
    from ragstone.agents.article.graph import build_graph
    from ragstone.agents.article.saver import RunSaver

    saver = RunSaver(pipeline.workspace.articles, token)
    graph = build_graph(pipeline, run.graph, saver, tell)
    config: Any = {"configurable": {"thread_id": run.id}, "recursion_limit": MOST_STEPS}
    start = None if await saver.aget_tuple(config) else new_state(run.topic)
    state: ArticleState = await graph.ainvoke(start, config, durability="sync")
    return state


def require_setup(settings: Settings) -> Team:
    """Return the agents that write articles, or raise `SettingsError` that says what is missing."""
    if not _has_graph():
        hint = 'pip install "ragstone[agents]"'
        raise SettingsError("writing articles needs langgraph, which is not installed", hint=hint)
    team = load_team(settings.agents.file)
    for agent in team.agents.values():
        choose_model(settings, agent)
    for member in team.panel:
        if member.persona:
            choose_model(settings, member)
    return team


def _has_graph() -> bool:
    try:
        return find_spec("langgraph.graph") is not None
    except ImportError:
        return False


def read_article(run: ArticleRun, state: ArticleState) -> WrittenArticle:
    """Return the article of a run that has come to its end."""
    from ragstone.agents.article.panel import count_votes

    settled: Record = state["article"]
    status: ArticleStatus = "unverified"
    if settled:
        status = "accepted" if count_votes(state["votes"]) else "rejected"
    citations = tuple(Citation(**entry) for entry in settled.get("citations", ()))
    claims = tuple(
        ArticleClaim(**{**claim, "checked_by": tuple(claim["checked_by"])}) for claim in settled.get("claims", ())
    )
    return WrittenArticle(
        topic=run.topic,
        status=status,
        markdown=_write_markdown(settled, claims, citations) if settled else state["draft"] + "\n",
        citations=citations,
        claims=claims,
        votes=tuple(PanelVote(**vote) for vote in state["votes"]),
        rounds=state["round"],
        queries=tuple(
            KnowledgeQuery(*(query[name] for name in ("node", "tool", "query", "reused", "error")))
            for query in state["knowledge_queries"]
        ),
        steps=tuple(NodeStep(**step) for step in state["steps"]),
        degraded=tuple(dict.fromkeys(state["degraded"])),
    )


def _write_markdown(settled: Record, claims: Sequence[ArticleClaim], citations: Sequence[Citation]) -> str:
    """Return the text with its sources and the table of its claims."""
    parts = [str(settled["body"])]
    if citations:
        sources = {one.n: _place(one) for one in reversed(citations)}
        parts += ["## Sources", "\n".join(f"{number}. {sources[number]}" for number in sorted(sources))]
    if claims:
        head = ["| Sentence | Outcome | What became of it | Source |", "|---|---|---|---|"]
        rows = [
            f"| {_cell(one.text)} | {one.outcome} | {one.treatment} | {f'[{one.citation}]' if one.citation else '–'} |"
            for one in claims
        ]
        parts += ["## Claims", "\n".join([*head, *rows])]
    return "\n\n".join(parts) + "\n"


def _place(citation: Citation) -> str:
    where = [citation.title, citation.section, f"page {citation.page}" if citation.page else "", citation.uri]
    return ", ".join(dict.fromkeys(" ".join(part.split()) for part in where if part))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
