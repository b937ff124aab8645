"""Talks to a language model behind an OpenAI-compatible address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from ragstone.core.errors import RemoteError
from ragstone.core.model_types import Message
from ragstone.core.settings import RemoteModel
from ragstone.models.openai_client import CallFailed, OpenAIService

CUT_OFF = "raise llm.max_tokens"


class OpenAILLM:
    """A chat model; every way of getting no usable reply is a `RemoteError` within the deadline."""

    def __init__(
        self,
        model: str,
        settings: RemoteModel | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        self._service = OpenAIService(settings or RemoteModel(), sleep=sleep)

    @property
    def name(self) -> str:
        return self._model

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        """The whole reply."""
        arguments = self._arguments(messages, max_tokens)

        async def request(client: Any) -> tuple[str, str]:
            reply = await client.chat.completions.create(**arguments)
            choice = reply.choices[0]
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

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float
    ) -> AsyncIterator[str]:
        """The reply as it is written; a reply that breaks off ends in an error, not in silence."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        arguments = self._arguments(messages, max_tokens) | {"stream": True}
        try:
            parts = await self._service.call(
                lambda client: client.chat.completions.create(**arguments), seconds=seconds
            )
            reason = None
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
                    if not part.choices:
                        continue
                    reason = part.choices[0].finish_reason or reason
                    if part.choices[0].delta.content:
                        yield part.choices[0].delta.content
        except GeneratorExit:
            raise
        except Exception as error:
            failure = self._service.failure(error)
            if failure is None:
                raise
            raise self._error(failure) from None
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

    def _error(self, failure: CallFailed) -> RemoteError:
        return RemoteError(f"{self._model}: {failure}", hint=failure.hint)
