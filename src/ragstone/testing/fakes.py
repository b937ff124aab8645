"""Models that need no weights: deterministic, quick, and honest about what they were asked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Collection, Sequence
from functools import lru_cache

import numpy as np

from ragstone.core.errors import RagstoneError, RemoteError
from ragstone.core.model_types import EmbeddingModel, Embeddings, Message, WordTokenizer
from ragstone.core.types import Role, Vector

WORD = re.compile(r"\w+")


class FakeEmbedder:
    """Each word has a fixed random direction; texts are near each other by the words they share.

    `refuse` are texts it cannot embed, `errors` are raised by the next calls, one each; `calls` are the texts
    and roles it was asked for.
    """

    tokenizer = WordTokenizer()

    def __init__(
        self,
        *,
        name: str = "fake",
        dimension: int = 64,
        max_tokens: int = 512,
        refuse: Collection[str] = (),
        errors: Sequence[RagstoneError] = (),
    ) -> None:
        self.model = EmbeddingModel(name, dimension=dimension, max_tokens=max_tokens, revision="1")
        self.refuse = refuse
        self.errors = list(errors)
        self.calls: list[tuple[tuple[str, ...], Role]] = []
        self.closed = False

    @property
    def queries(self) -> list[tuple[str, ...]]:
        """Return the texts of the calls that were for queries."""
        return [texts for texts, role in self.calls if role == "query"]

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.calls.append((tuple(texts), role))
        if self.errors:
            raise self.errors.pop(0)
        vectors = np.zeros((len(texts), self.model.dimension), np.float32)
        failed = []
        for index, text in enumerate(texts):
            words = WORD.findall(text.lower())
            if text in self.refuse or not words:
                failed.append(index)
                continue
            total = np.sum([_direction(self.model.name, self.model.dimension, word) for word in words], axis=0)
            vectors[index] = total / np.linalg.norm(total)
        return Embeddings(vectors, self.model.id, tuple(failed))

    async def close(self) -> None:
        self.closed = True


@lru_cache(10_000)
def _direction(model: str, dimension: int, word: str) -> Vector:
    seed = hashlib.sha256(f"{model} {word}".encode("utf-8", "surrogatepass")).digest()
    generator = np.random.default_rng(int.from_bytes(seed[:8], "big"))
    return generator.standard_normal(dimension, dtype=np.float32)


class FakeReranker:
    """Scores a passage by the share of the query's words it has; `errors` are raised by the next calls."""

    name = "fake"

    def __init__(self, *, errors: Sequence[RagstoneError] = ()) -> None:
        self.errors = list(errors)
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.closed = False

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        self.calls.append((query, tuple(passages)))
        if self.errors:
            raise self.errors.pop(0)
        wanted = set(WORD.findall(query.lower()))
        return [
            len(wanted & set(WORD.findall(passage.lower()))) / len(wanted) if wanted else 0.0 for passage in passages
        ]

    async def close(self) -> None:
        self.closed = True


class FakeLLM:
    """Says what it was told to say, in order; an error among the replies is raised. `requests` is what it got."""

    name = "fake"

    def __init__(self, replies: Sequence[str | RagstoneError] = ()) -> None:
        self.replies = list(replies)
        self.requests: list[tuple[Message, ...]] = []
        self.closed = False

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        self.requests.append(tuple(messages))
        if not self.replies:
            raise RemoteError("the fake LLM has no reply left", hint="give FakeLLM one reply per request")
        reply = self.replies.pop(0)
        if isinstance(reply, RagstoneError):
            raise reply
        return reply

    async def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str]:
        reply = await self.complete(messages, max_tokens=max_tokens, seconds=seconds)
        for word in re.findall(r"\s*\S+", reply):
            yield word

    async def close(self) -> None:
        self.closed = True
