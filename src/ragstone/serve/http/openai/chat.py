"""A reply as a chat completion, whole or as its sentences are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from ragstone.answer.styles import mark_pattern
from ragstone.core.answers import Answer, AnswerEvent, AnswerReady, SentenceReady
from ragstone.core.clock import now
from ragstone.core.ids import opaque_id
from ragstone.core.model_types import WordTokenizer
from ragstone.schemas.openai import (
    AnnotationSchema,
    ChatChoiceSchema,
    ChatChunkSchema,
    ChatCompletionSchema,
    ChatDeltaSchema,
    ChatMessageSchema,
    ChatUsageSchema,
    ChunkChoiceSchema,
    UrlCitationSchema,
)
from ragstone.serve.http.openai.bodies import ChatMessage


@dataclass(frozen=True, slots=True)
class Completion:
    """Gives a reply the form of a completion; all parts of it have one id."""

    model: str
    messages: Sequence[ChatMessage]
    citation_format: str
    id: str = field(default_factory=lambda: f"chatcmpl-{opaque_id()}")
    created: int = field(default_factory=lambda: int(now().timestamp()))

    async def whole(self, answer: Answer) -> ChatCompletionSchema:
        """Return the reply at once."""
        message = ChatMessageSchema.model_construct(content=answer.answer, annotations=self._annotations(answer))
        return ChatCompletionSchema.of(
            answer,
            **self._head("chat.completion"),
            choices=[ChatChoiceSchema.model_construct(index=0, message=message)],
            usage=await self._usage(answer.answer),
        )

    async def chunks(
        self, events: AsyncGenerator[AnswerEvent], *, usage: bool
    ) -> AsyncGenerator[tuple[str, ChatChunkSchema]]:
        """Yield the reply as it is made; `usage` adds a chunk that counts its words."""
        yield "chunk", self._chunk(role="assistant", content="")
        written = ""
        async with aclosing(events):
            async for event in events:
                if isinstance(event, SentenceReady):
                    text = f" {event.text}" if written else event.text
                    written += text
                    yield "chunk", self._chunk(content=text)
                elif isinstance(event, AnswerReady):
                    if rest := event.answer.answer.removeprefix(written):
                        yield "chunk", self._chunk(content=rest)
                    yield "chunk", self._last(event.answer)
                    if usage:
                        counted = await self._usage(event.answer.answer)
                        yield (
                            "chunk",
                            ChatChunkSchema.model_construct(
                                **self._head("chat.completion.chunk"), choices=[], usage=counted
                            ),
                        )

    def _chunk(self, **delta: Any) -> ChatChunkSchema:
        choice = ChunkChoiceSchema.model_construct(index=0, delta=ChatDeltaSchema.model_construct(**delta))
        return ChatChunkSchema.model_construct(**self._head("chat.completion.chunk"), choices=[choice])

    def _last(self, answer: Answer) -> ChatChunkSchema:
        delta = ChatDeltaSchema.model_construct(annotations=self._annotations(answer) or None)
        choice = ChunkChoiceSchema.model_construct(index=0, delta=delta, finish_reason="stop")
        return ChatChunkSchema.of(answer, **self._head("chat.completion.chunk"), choices=[choice], usage=None)

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    async def _usage(self, text: str) -> ChatUsageSchema:
        read, written = await asyncio.to_thread(self._count_words, text)  # a long history takes a while
        return ChatUsageSchema.of(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)

    def _count_words(self, text: str) -> tuple[int, int]:
        return sum(_count(message.text) for message in self.messages), _count(text)

    def _annotations(self, answer: Answer) -> list[AnnotationSchema]:
        """Return the marks that refer to web pages, each with its place in the text."""
        pages = {one.n: one for one in answer.citations if one.uri.startswith(("http://", "https://"))}
        return [
            AnnotationSchema.model_construct(
                url_citation=UrlCitationSchema.of(
                    start_index=mark.start(), end_index=mark.end(), url=page.uri, title=page.title
                )
            )
            for mark in mark_pattern(self.citation_format).finditer(answer.answer)
            if (page := pages.get(int(mark[1])))
        ]


def _count(text: str) -> int:
    return len(WordTokenizer().offsets(text))
