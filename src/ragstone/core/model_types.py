"""Types that the models share: completions, entailments, token counts and costs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from ragstone.core.errors import BudgetSpent
from ragstone.core.types import Matrix, Space


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
        """The id stored with every Space: equal ids mean comparable vectors."""
        return f"{self.name}@{self.revision}" if self.revision else self.name

    def fits(self, space: Space) -> bool:
        """Return whether a Space is of this model; one behind an address may not have told its dimension yet."""
        return self.id == space.model and self.dimension in (0, space.dimension)


def model_name(model_id: str) -> str:
    """Return the name in a model id, without the revision."""
    return model_id.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors in the order of the texts, and the model that really made them."""

    vectors: Matrix
    model: str
    failed: tuple[int, ...] = ()
    """Positions whose text the model refused; their rows are zero."""


@dataclass(frozen=True, slots=True)
class TextVectors:
    """Vectors of a caller's own texts, in their order."""

    vectors: Matrix
    model: str
    tokens: int
    """The number of tokens that the model has read."""


Relation = Literal["entails", "contradicts", "neutral"]


@dataclass(frozen=True, slots=True)
class Entailment:
    """The relation of a premise to a hypothesis, with the model's confidence from 0 to 1."""

    relation: Relation
    score: float


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with an LLM."""

    role: Literal["system", "user", "assistant"]
    content: str


# A letter of a script without blanks is about a token, and so is every eight letters of one endless word.
WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{1,8}|[^\w\s]"
)


class WordTokenizer:
    """Words and punctuation marks: close to a word-piece count for English, exact nowhere."""

    name = "words"

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        return [match.span() for match in WORD.finditer(text)]


class Bill(defaultdict[str, float]):
    """US dollars by kind, and how much of each kind was used: tokens, or queries."""

    def __init__(self, refusal: BudgetSpent | None = None, **usd: float) -> None:
        super().__init__(float, usd)
        self.units: dict[str, float] = defaultdict(float)
        self.refusal = refusal
        """The error that is raised for a cost although nothing is left."""


_bill: ContextVar[Bill | None] = ContextVar("ragstone_bill", default=None)


@contextmanager
def collect_costs(refusal: BudgetSpent | None = None) -> Iterator[Bill]:
    """Collect the costs of the block and of tasks that it starts; with a `refusal` nothing may be paid for."""
    bill = Bill(refusal)
    before = _bill.set(bill)
    try:
        yield bill
    finally:
        _bill.reset(before)


def add_cost(kind: str, usd: float, units: float = 0) -> None:
    """Add a cost and what was used for it; outside of `collect_costs` it is dropped."""
    bill = _bill.get()
    if bill is None:
        return
    if usd > 0:
        bill[kind] += usd
    if units > 0:
        bill.units[kind] += units


def require_budget() -> None:
    """Raise `BudgetSpent` if the tenant has nothing left; called before every request that costs money."""
    bill = _bill.get()
    if bill is not None and bill.refusal is not None:
        raise bill.refusal


def unit_rows(matrix: Matrix) -> Matrix:
    """Return the rows scaled to length one; a zero row stays zero."""
    import numpy as np

    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return scaled
