"""A chat model that can ask for tools, behind an OpenAI-compatible address."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

from ragstone.core.errors import RemoteError
from ragstone.core.model_types import add_cost, require_budget
from ragstone.models.llm.openai_client import CallFailed, OpenAIService
from ragstone.settings.tree import LLMSettings

Turn = Mapping[str, Any]
"""One message, as OpenAI-compatible services write it."""
OnText = Callable[[str], None]
MILLION = 1_000_000
NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Tokens that a model has read and written for a reply, and their price."""

    read: int
    written: int
    usd: float


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for. Arguments that were no JSON object are None."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of the model, and the tools it asks for."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: ModelUsage | None = field(default=None, compare=False)
    """None where the service does not count."""

    @property
    def turn(self) -> Turn:
        """The reply as a message of the conversation."""
        turn: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.tool_calls:
            turn["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments or {})},
                }
                for call in self.tool_calls
            ]
        return turn


class ChatModel(Protocol):
    """Answers a conversation, and may ask for tools."""

    async def reply(
        self, turns: Sequence[Turn], tools: Sequence[Mapping[str, Any]] = (), *, temperature: float = 0.7
    ) -> Reply: ...


class OpenAIChat:
    """Implements `ChatModel`; every way of getting no usable reply is a `RemoteError`."""

    def __init__(self, settings: LLMSettings) -> None:
        if settings.model is None:
            raise RemoteError("no chat model is configured", hint="set llm.model and llm.base_url")
        self._model = settings.model
        self._settings = settings
        self._service = OpenAIService(settings)

    @property
    def name(self) -> str:
        return self._model

    async def reply(
        self,
        turns: Sequence[Turn],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        temperature: float = 0.7,
        stop: Sequence[str] = (),
        tool_choice: str | Mapping[str, Any] | None = None,
        on_text: OnText | None = None,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> Reply:
        """Return the model's next turn, which ends before a text of `stop`; `on_text` hears it while it is written.

        `options` are further parts of the request, such as `response_format`, as the service takes them.
        """
        limit = "max_completion_tokens" if self._service.is_openai else "max_tokens"
        arguments: dict[str, Any] = {
            "model": self._model,
            "messages": list(turns),
            "temperature": temperature,
            limit: self._settings.max_tokens,
            **options,
        }
        if tools:
            arguments["tools"] = list(tools)
        if stop:
            arguments["stop"] = list(stop)
        if tool_choice is not None:
            arguments["tool_choice"] = tool_choice
        priced = bool(self._settings.price_in or self._settings.price_out)
        if on_text:
            arguments |= {"stream": True} | ({"stream_options": {"include_usage": True}} if priced else {})

        async def request(client: Any) -> Reply:
            answer = await client.chat.completions.create(**arguments)
            if on_text:
                message, usage = await _gather(answer, on_text)
            else:
                message, usage = answer.choices[0].message, answer.usage
            # A model that writes a text of `stop` at once has said nothing, as it was asked to.
            return _read(message, self._charge(usage), may_be_empty=bool(stop))

        if priced:
            require_budget()
        try:
            # Each attempt has the whole timeout: a model that hangs once is asked again.
            return await self._service.call(request)
        except CallFailed as failure:
            raise RemoteError(f"{self._model}: {failure}", hint=failure.hint) from failure

    async def close(self) -> None:
        await self._service.close()

    def _charge(self, usage: Any) -> ModelUsage | None:
        if usage is None:
            return None
        read, written = usage.prompt_tokens, usage.completion_tokens
        usd = (read * self._settings.price_in + written * self._settings.price_out) / MILLION
        add_cost("llm", usd, read + written)
        return ModelUsage(read, written, usd)


def read_calls(turn: Turn) -> list[ToolCall]:
    """Return the tools that a reply asks for, from its message."""
    return [
        ToolCall(call["id"], call["function"]["name"], _object(call["function"]["arguments"]))
        for call in turn.get("tool_calls", ())
    ]


async def _gather(parts: Any, on_text: OnText) -> tuple[Any, Any]:
    """Return the message that the parts of a streamed reply make, and its usage; one that breaks off is none."""
    texts: list[str] = []
    calls: dict[int, dict[str, str]] = {}
    usage = reason = None
    async with parts:
        async for part in parts:
            usage = part.usage or usage
            for choice in part.choices[:1]:
                reason = choice.finish_reason or reason
                if choice.delta.content:
                    texts.append(choice.delta.content)
                    on_text(choice.delta.content)
                for call in choice.delta.tool_calls or ():
                    _add_call(calls.setdefault(call.index, {"id": "", "name": "", "arguments": ""}), call)
    if reason is None:
        raise ValueError("the reply broke off")
    functions = [
        SimpleNamespace(id=call["id"], type="function", function=SimpleNamespace(**call)) for call in calls.values()
    ]
    return SimpleNamespace(content="".join(texts), tool_calls=functions), usage


def _add_call(call: dict[str, str], part: Any) -> None:
    call["id"] += part.id or ""
    if part.function:
        call["name"] += part.function.name or ""
        call["arguments"] += part.function.arguments or ""


def _read(message: Any, usage: ModelUsage | None, *, may_be_empty: bool) -> Reply:
    calls = tuple(
        ToolCall(call.id, call.function.name, _object(call.function.arguments))
        for call in message.tool_calls or ()
        if call.type == "function"
    )
    text = message.content or ""
    if not text.strip() and not calls and not may_be_empty:
        raise ValueError("the reply has neither text nor tool calls")
    return Reply(text, calls, usage)


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
