"""Prompts that MCP clients offer to people: each says which tool to use, and to name the sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragstone.core.errors import InputError, NotFoundError


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text with one gap."""

    name: str
    description: str
    gap: str
    about: str
    text: str

    def as_mcp(self) -> Any:
        """Return the prompt as the protocol lists it."""
        import mcp_types as types

        gap = types.PromptArgument(name=self.gap, description=self.about, required=True)
        return types.Prompt(name=self.name, description=self.description, arguments=[gap])


PROMPTS: Mapping[str, Prompt] = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            "answer_with_sources",
            "Answer a question from the knowledge base, naming the source of every sentence.",
            "question",
            "The question.",
            "Use search_knowledge to answer this question. End every sentence with the source it stands on. "
            "Say so when the passages do not answer it.\n\nQuestion: {}",
        ),
        Prompt(
            "check_text",
            "Check the factual claims of a text.",
            "text",
            "The text to check.",
            "Use check_text on the text below. List the sentences that are refuted or open, each with its best "
            "evidence, and say how many are confirmed.\n\nText:\n{}",
        ),
        Prompt(
            "research_brief",
            "Write a short brief on a topic with its sources.",
            "topic",
            "The topic.",
            "Use research_topic to find what the knowledge base has on this topic, then write a brief of at most "
            "ten sentences, each with its source.\n\nTopic: {}",
        ),
    )
}


async def fill_prompt(name: str, arguments: Mapping[str, str]) -> Any:
    """Return a prompt with its gap filled."""
    import mcp_types as types

    prompt = PROMPTS.get(name)
    if prompt is None:
        raise NotFoundError(f"no prompt '{name[:60]}'", hint=f"one of: {', '.join(PROMPTS)}")
    value = arguments.get(prompt.gap, "").strip()
    if not value:
        raise InputError(f"{name} needs '{prompt.gap}'", hint=prompt.about)
    # Joined, not formatted: braces in what was given mean nothing.
    text = types.TextContent(text=prompt.text.replace("{}", "") + value)
    return types.GetPromptResult(
        description=prompt.description, messages=[types.PromptMessage(role="user", content=text)]
    )
