"""Agents of an article pipeline: which tools each may call, how often, and how thoroughly it searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import Mode

Frequency = Literal["low", "medium", "high"]
Priority = Literal["low", "medium", "high", "critical"]


@dataclass(frozen=True, slots=True)
class Role:
    """The tools of an agent, and how often, urgently and thoroughly it searches."""

    name: str
    need: str
    tools: tuple[str, ...]
    frequency: Frequency
    priority: Priority
    mode: Mode
    """Its search mode: background may be quick, facts may not."""


ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role(
            "Writer",
            "background context, examples",
            ("search_knowledge", "get_writing_examples"),
            "medium",
            "low",
            "balanced",
        ),
        Role("FactResearcher", "deep research, sources", ("research_topic",), "high", "high", "thorough"),
        Role(
            "FactVerification",
            "claim verification",
            ("verify_claim", "search_knowledge"),
            "high",
            "critical",
            "thorough",
        ),
        Role("Editor", "style references, similar articles", ("search_knowledge",), "low", "low", "fast"),
        Role(
            "StyleEnforcer",
            "voice examples, tone guides",
            ("search_knowledge", "get_style_references"),
            "low",
            "low",
            "fast",
        ),
        Role(
            "Critic",
            "fact-checking, quality examples",
            ("verify_claim", "search_knowledge", "find_similar_critiques"),
            "medium",
            "medium",
            "balanced",
        ),
    )
}
