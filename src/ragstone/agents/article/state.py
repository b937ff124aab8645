"""The state of a run: plain JSON, so that a checkpoint is data and nothing in it is ever executed."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from ragstone.core.types import Json

Record = dict[str, Json]
Records = Annotated[list[Record], operator.add]
Update = dict[str, Any]


class ArticleState(TypedDict, total=False):
    """The fields that the nodes of a run share. Lists that are added to are never shortened."""

    topic: str
    messages: Records
    """The messages to and from all agents, in the form of OpenAI-compatible services."""
    invocation: Record
    """The agent whose turn goes on after its tools: node, first message, calls, queries; empty between turns."""
    research_facts: Records
    knowledge_queries: Records
    retrieved_contexts: Records
    verified_claims: Records
    draft: str
    """The text as it stands."""
    voice_notes: list[str]
    critique: str
    claims: list[Record]
    """The checked sentences of the draft."""
    best: Record
    """Of the drafts that were checked, the one with the most sentences that hold, and its claims."""
    corrections: str
    """Advice of the verifier to the editor."""
    stage: Literal["write", "revise", "settle"]
    round: int
    article: Record
    """The settled text with citations and claims."""
    votes: list[Record]
    steps: Records
    degraded: Annotated[list[str], operator.add]


def new_state(topic: str) -> ArticleState:
    """Return the state that a run begins with."""
    return {
        "topic": topic,
        "messages": [],
        "invocation": {},
        "research_facts": [],
        "knowledge_queries": [],
        "retrieved_contexts": [],
        "verified_claims": [],
        "draft": "",
        "voice_notes": [],
        "critique": "",
        "claims": [],
        "best": {},
        "corrections": "",
        "stage": "write",
        "round": 0,
        "article": {},
        "votes": [],
        "steps": [],
        "degraded": [],
    }


def is_asking(state: Mapping[str, Any], node: str) -> bool:
    """Return whether a node is in the middle of its turn: its tools have run, and it goes on."""
    return bool(state["invocation"].get("node") == node)
