"""An answer written by an LLM, of which only what its passages say is kept, sentence by sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from ragstone.answer.check import Checker
from ragstone.answer.pack import PackedPassage
from ragstone.answer.quotes import Statement
from ragstone.answer.reply import CitedSentence, ReplyReader, build_messages, declines, refuses
from ragstone.core.errors import RemoteError
from ragstone.core.model_types import Message
from ragstone.core.protocols import LLM
from ragstone.core.search import Exchange


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """Limits on the length and time of a model's reply."""

    sentences: int
    tokens: int
    seconds: float


class Composition:
    """The supported part of one reply: iterate over `statements`, then see whether the model declined."""

    def __init__(
        self,
        llm: LLM,
        passages: Sequence[PackedPassage],
        checker: Checker,
        limits: ReplyLimits,
        earlier: Sequence[Exchange] = (),
        instructions: str = "",
    ) -> None:
        self._llm = llm
        self._checker = checker
        self._limits = limits
        self._earlier = earlier
        self._instructions = instructions
        self.passages = passages
        self.declined = False
        self.refused = False

    @property
    def omissions(self) -> Sequence[str]:
        """Return how many sentences were left out, by reason."""
        return self._checker.omissions

    async def statements(self, question: str, *, streaming: bool = False) -> AsyncGenerator[Statement]:
        """Yield the supported sentences, each once it is checked. Raises `RemoteError`, also when slow."""
        messages = build_messages(question, self.passages, self._limits.sentences, self._earlier, self._instructions)
        seen: set[str] = set()
        async with aclosing(self._sentences(messages, streaming)) as sentences:
            async for sentence in sentences:
                same = sentence.text.casefold()
                if same in seen or not (statement := await self._checker.check(sentence)):
                    continue
                seen.add(same)
                yield statement
                if len(seen) == self._limits.sentences:
                    return

    async def _sentences(self, messages: Sequence[Message], streaming: bool) -> AsyncGenerator[CitedSentence]:
        reader = ReplyReader()
        async with aclosing(self._parts(messages, streaming)) as parts:
            async for part in parts:
                for sentence in reader.feed(part):
                    yield sentence
        self.declined, self.refused = declines(reader.text), refuses(reader.text)
        if not (self.declined or self.refused):
            for sentence in reader.rest():
                yield sentence

    async def _parts(self, messages: Sequence[Message], streaming: bool) -> AsyncGenerator[str]:
        tokens, seconds = self._limits.tokens, self._limits.seconds
        if streaming:
            parts = self._llm.stream(messages, max_tokens=tokens, seconds=seconds)
        else:
            parts = _whole(self._llm.complete(messages, max_tokens=tokens, seconds=seconds))
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            while True:
                try:
                    # Around each part, not around the loop: what is done with a part takes time of its own.
                    async with asyncio.timeout_at(deadline):
                        part = await anext(parts, None)
                except TimeoutError as error:
                    raise self._slow() from error
                if part is None:
                    return
                yield part
        finally:
            if isinstance(parts, AsyncGenerator):
                await parts.aclose()

    def _slow(self) -> RemoteError:
        return RemoteError(
            f"{self._llm.name} timed out after {self._limits.seconds:g} s",
            hint="raise llm.timeout or choose a faster llm.model",
        )


async def _whole(reply: Awaitable[str]) -> AsyncIterator[str]:
    yield await reply
