"""What models take and give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import Matrix


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Facts about an embedding model."""

    name: str
    dimension: int
    max_tokens: int
    revision: str = ""
    """Part of a hash of the weights, where they are at hand."""
    price_per_million: float = 0.0
    latency_ms: float | None = None
    mteb: float | None = None
    local: bool = True

    @property
    def id(self) -> str:
        """What is stored with every Space: equal ids mean comparable vectors."""
        return f"{self.name}@{self.revision}" if self.revision else self.name


def model_name(model_id: str) -> str:
    """A model by the name that people know, without the revision that a Space is bound to."""
    return model_id.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors in the order of the texts, and the model that really made them."""

    vectors: Matrix
    model: str
    failed: tuple[int, ...] = ()
    """Positions whose text the model refused; their rows are zero."""


Relation = Literal["entails", "contradicts", "neutral"]


@dataclass(frozen=True, slots=True)
class Entailment:
    """What a premise means for a hypothesis, and how sure the model is of it, from 0 to 1."""

    relation: Relation
    score: float


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with an LLM."""

    role: Literal["system", "user", "assistant"]
    content: str
