"""Language models that say what they are told to, and one that quotes what is nearest to the question."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

from ragstone.core.model_types import Message
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.sentences import sentence_spans

_PASSAGE = re.compile(r'<passage number="(\d+)"[^>]*>\n(.*?)\n</passage>', re.S)
_PIECE = 7
"""Characters that a streamed reply comes in."""


class ScriptedLLM:
    """Says one text, whatever it is asked."""

    name = "double"

    def __init__(self, reply: str = "") -> None:
        self.reply = reply

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        return self.reply

    async def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str]:
        reply = await self.complete(messages, max_tokens=max_tokens, seconds=seconds)
        for start in range(0, len(reply), _PIECE):
            yield reply[start : start + _PIECE]

    async def close(self) -> None:
        """Nothing is held."""


class QuotingLLM(ScriptedLLM):
    """Replies with the sentence of the passages that shares most words with the question, and cites it."""

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        data, _, question = messages[-1].content.rpartition("Question: ")
        asked = set(analyze_query(question))
        sentences = [
            (len(asked.intersection(analyze(text[start:end]))), int(number), text[start:end])
            for number, text in _PASSAGE.findall(data)
            for start, end in sentence_spans(text)
        ]
        shared, number, sentence = max(sentences, key=lambda item: (item[0], -item[1]), default=(0, 0, ""))
        return f"{' '.join(sentence.split())} [{number}]" if shared else "NO ANSWER"
