"""Talks to a language model behind an OpenAI-compatible address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from ragstone.core.errors import RemoteError
from ragstone.core.model_types import Message, WordTokenizer, add_cost, require_budget
from ragstone.models.llm.openai_client import CallFailed, OpenAIService
from ragstone.settings.tree import RemoteModel

CUT_OFF = "raise llm.max_tokens"
MILLION = 1_000_000


class OpenAILLM:
    """A chat model; every way of getting no usable reply is a `RemoteError` within the deadline."""

    def __init__(
        self,
        model: str,
        settings: RemoteModel | None = None,
        *,
        prices: tuple[float, float] = (0.0, 0.0),
        kind: str = "llm",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        self._prices = prices
        self._kind = kind
        """The kind of its costs."""
        self._service = OpenAIService(settings or RemoteModel(), sleep=sleep)

    @property
    def name(self) -> str:
        return self._model

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        """Return the whole reply."""
        self._require_budget()
        arguments = self._arguments(messages, max_tokens)

        async def request(client: Any) -> tuple[str, str]:
            reply = await client.chat.completions.create(**arguments)
            choice = reply.choices[0]
            self._charge(messages, str(choice.message.content or ""), reply.usage)
            if not isinstance(choice.message.content, str) or not choice.message.content.strip():
                raise ValueError("the reply has no text")
            return choice.message.content, str(choice.finish_reason)

        try:
            text, reason = await self._service.call(request, seconds=seconds)
        except CallFailed as failure:
            raise self._error(failure) from failure
        if reason == "length":
            raise RemoteError(f"{self._model} was cut off after {max_tokens} tokens", hint=CUT_OFF)
        return text

    async def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str]:
        """Yield the reply as it is written; a reply that breaks off ends in an error, not in silence."""
        self._require_budget()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        arguments = self._arguments(messages, max_tokens) | {"stream": True}
        if any(self._prices):
            arguments["stream_options"] = {"include_usage": True}
        written: list[str] | None = None
        usage = None
        try:
            parts = await self._service.call(
                lambda client: client.chat.completions.create(**arguments), seconds=seconds
            )
            reason, written = None, []
            async with parts:
                while True:
                    try:
                        # A deadline per part, not around the loop: the caller's own time is not ours to cancel.
                        async with asyncio.timeout_at(deadline):
                            part = await anext(parts, None)
                    except TimeoutError:
                        raise CallFailed("slow", f"did not finish within {seconds:g} s") from None
                    if part is None:
                        break
                    usage = part.usage or usage
                    if not part.choices:
                        continue
                    reason = part.choices[0].finish_reason or reason
                    if part.choices[0].delta.content:
                        written.append(part.choices[0].delta.content)
                        yield written[-1]
        except GeneratorExit:
            raise
        except Exception as error:
            failure = self._service.failure(error)
            if failure is None:
                raise
            raise self._error(failure) from None
        finally:
            if written is not None:  # also of a reply that breaks off or is not read to its end
                self._charge(messages, "".join(written), usage)
        if reason != "stop":
            said = "was cut off" if reason == "length" else "broke off"
            raise RemoteError(f"{self._model} {said} before the end of its reply", hint=CUT_OFF)

    async def close(self) -> None:
        await self._service.close()

    def _arguments(self, messages: Sequence[Message], max_tokens: int) -> dict[str, Any]:
        # OpenAI renamed the limit; the other servers kept the old name.
        limit = "max_completion_tokens" if self._service.is_openai else "max_tokens"
        turns = [{"role": message.role, "content": message.content} for message in messages]
        return {"model": self._model, "messages": turns, limit: max_tokens}

    def _charge(self, messages: Sequence[Message], said: str, usage: Any) -> None:
        if not any(self._prices):
            return
        # Not every service counts; an estimate is nearer to the truth than nothing.
        read = usage.prompt_tokens if usage else sum(_tokens(message.content) for message in messages)
        written = usage.completion_tokens if usage else _tokens(said)
        add_cost(self._kind, (read * self._prices[0] + written * self._prices[1]) / MILLION, read + written)

    def _require_budget(self) -> None:
        if any(self._prices):
            require_budget()

    def _error(self, failure: CallFailed) -> RemoteError:
        return RemoteError(f"{self._model}: {failure}", hint=failure.hint)


def _tokens(text: str) -> int:
    return len(WordTokenizer().offsets(text))
