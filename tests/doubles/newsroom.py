"""A scripted model that plays every agent of the article pipeline, told apart by their personas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.doubles.openai import OpenAIDouble, Reply, Request, chat_reply, json_reply

PERSONAS = {
    "gather facts": "research",
    "write clear": "writer",
    "edit articles": "editor",
    "keep the style": "style_enforce",
    "strict reader": "critic",
    "verify factual": "fact_verify",
    "may be published": "reader",
}
Part = str | Reply | Callable[[Request], Reply | str]
USAGE = (100, 20)


def agent_of(request: Request) -> str:
    """Return which agent a request is for; `engine` for what the engine itself asks, such as sub-queries."""
    system = str(request.body["messages"][0]["content"])
    return next((name for words, name in PERSONAS.items() if words in system), "engine")


def ask_tool(name: str, *queries: Mapping[str, Any] | str, first: int = 0) -> Reply:
    """Return a reply that calls a tool, once for each of the arguments; a text stands for itself, JSON or not."""
    calls = [
        {
            "id": f"{name}-{place}",
            "type": "function",
            "function": {"name": name, "arguments": query if isinstance(query, str) else json.dumps(query)},
        }
        for place, query in enumerate(queries, first)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
    return json_reply(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    )


def once(tool: Reply, text: str) -> Callable[[Request], Reply | str]:
    """Return a part that asks for a tool first, and says something when it has the answer."""

    def play(request: Request) -> Reply | str:
        return text if request.body["messages"][-1]["role"] == "tool" else tool

    return play


def newsroom(parts: Mapping[str, Part]) -> OpenAIDouble:
    """Return a service in which each agent plays its part; who has none says that all is well."""

    def play(request: Request) -> Reply:
        part = parts.get(agent_of(request), "ACCEPT. All is well.")
        said = part(request) if callable(part) else part
        return chat_reply(said, usage=USAGE) if isinstance(said, str) else said

    return OpenAIDouble(play)
