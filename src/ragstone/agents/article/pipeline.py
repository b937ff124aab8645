"""The workspace, agents, models and tools that the nodes of a run work with."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragstone.agents.article.state import ArticleState, Record
from ragstone.agents.article.team import AgentSpec, PanelSpec, Team
from ragstone.agents.budget import Budget, Invocation, Run
from ragstone.agents.chat import ModelUsage, OnText, OpenAIChat
from ragstone.agents.toolbox import Toolbox
from ragstone.core.errors import SettingsError
from ragstone.engine.workspace import Workspace
from ragstone.settings.tree import LLMSettings, Settings


@dataclass(slots=True)
class Pipeline:
    """One run's view of a workspace. Its nodes work one after the other."""

    workspace: Workspace
    team: Team
    kb: str | None = None
    usage: list[ModelUsage] = field(default_factory=list)
    """The tokens and costs of the node that is at work."""
    chats: dict[tuple[str, str], OpenAIChat] = field(default_factory=dict)
    on_text: OnText | None = None
    """Hears what agents write while they write it; then their models are asked to stream."""

    def chat(self, spec: AgentSpec | PanelSpec) -> OpenAIChat:
        """Return the model of an agent: that of its provider, or that of `llm` where the provider is not set up."""
        settings = choose_model(self.workspace.settings, spec)
        key = (settings.base_url or "", settings.model or "")
        if key not in self.chats:
            self.chats[key] = OpenAIChat(settings)
        return self.chats[key]

    def toolbox(self, spec: AgentSpec, state: ArticleState) -> Toolbox:
        """Return the tools of an agent in the middle of its turn, with what the run has found so far."""
        asked = state["invocation"]
        invocation = Invocation(Budget(spec.calls), int(asked["calls"]), set(asked["asked"]), str(asked["unsure"]))
        found = OrderedDict(
            ((kept["standing"], kept["call"]), (json.dumps(kept["result"]), kept["confidence"]))
            for query in state["knowledge_queries"]
            if (kept := query["kept"])
        )
        return Toolbox(self.workspace, spec.tools, kb=self.kb, mode=spec.mode, invocation=invocation, run=Run(found))

    async def close(self) -> None:
        """Close the connections to the models."""
        for chat in self.chats.values():
            await chat.close()


def choose_model(settings: Settings, spec: AgentSpec | PanelSpec) -> LLMSettings:
    """Return the model of an agent or of a member of the panel, or raise `SettingsError` where none is set up."""
    provider = settings.agents.providers.get(spec.provider)
    if provider is not None and (spec.model or provider.model):
        return provider.model_copy(update={"model": spec.model or provider.model})
    if settings.llm.model is None:
        raise SettingsError(
            "writing an article needs a language model",
            hint="set llm.model and llm.base_url, or agents.providers, in the settings",
        )
    if spec.model and not spec.provider:
        return settings.llm.model_copy(update={"model": spec.model})
    return settings.llm


def remember_invocation(node: str, first: int, invocation: Invocation, *, closed: bool) -> Record:
    """Return the turn of an agent as the state keeps it; a `closed` one is offered no more tools."""
    return {
        "node": node,
        "first": first,
        "calls": invocation.calls,
        "asked": sorted(invocation.asked),
        "unsure": invocation.unsure,
        "closed": closed,
    }


def next_node(state: Mapping[str, Any]) -> str:
    """Return the node that asked for the tools which have just run."""
    return str(state["invocation"]["node"])
