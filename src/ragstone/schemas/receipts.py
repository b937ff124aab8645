"""Receipts of answers: as they are issued, and checked again."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field

from ragstone.core.answers import QuoteState, Support
from ragstone.core.ids import content_hash
from ragstone.schemas.answers import AnswerSchema
from ragstone.schemas.schema import Schema
from ragstone.settings.answers import CitationStyle

MOST_SENTENCES = 200
MOST_CITATIONS = 1000
MOST_CITED = 200
"""By one sentence: two quotes of each of a hundred passages."""
MOST_PARTS = 100
MOST_CHARS = 8000
"""Of a sentence or a quote, which are parts of a passage."""


class _ReceiptPart(Schema):
    """A part of a receipt, which others may have written: it is read as strictly as settings are."""

    model_config = ConfigDict(extra="forbid")


class ReceiptCitationSchema(_ReceiptPart):
    """A quote that a receipt stands on, and its hash."""

    n: int
    document_id: str
    chunk_id: str
    title: str
    uri: str
    section: str
    page: int | None
    site: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    quote: str = Field(min_length=1, max_length=MOST_CHARS)
    hash: str

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a citation, with the hash of its quote."""
        return super().of(source, hash=content_hash(source.quote), **values)


class ReceiptSentenceSchema(_ReceiptPart):
    """A sentence of a receipt with the numbers of its citations."""

    text: str = Field(max_length=MOST_CHARS)
    support: Support
    citations: list[int] = Field(max_length=MOST_CITED)


class WordingSchema(_ReceiptPart):
    """The style in which the answer of a receipt names its sources."""

    style: CitationStyle = "index"
    format: str = Field(default="[{index}]", max_length=100)


class ReceiptSchema(_ReceiptPart):
    """All that a later check of an answer needs; `digest` is a hash of the other fields."""

    receipt: Literal[1]
    engine: str
    moment: str
    tenant: str
    kb: str
    profile: str
    wording: WordingSchema = Field(default_factory=WordingSchema)
    models: dict[str, str | None]
    question: str
    answer: str
    answer_hash: str
    status: Literal["answered", "no_evidence"]
    sentences: list[ReceiptSentenceSchema] = Field(max_length=MOST_SENTENCES)
    citations: list[ReceiptCitationSchema] = Field(max_length=MOST_CITATIONS)
    unanswered: list[Annotated[str, Field(max_length=MOST_CHARS)]] = Field(default_factory=list, max_length=MOST_PARTS)
    nearest: list[ReceiptSentenceSchema] = Field(default_factory=list, max_length=MOST_SENTENCES)
    missing: list[Annotated[str, Field(max_length=MOST_CHARS)]] = Field(default_factory=list, max_length=MOST_PARTS)
    waiting: int = Field(default=0, ge=0)
    whole: str = ""
    digest: str


class CheckedSentenceSchema(Schema):
    """A sentence of a receipt; `reason` says why it does not hold."""

    text: str
    holds: bool
    reason: str


class CheckedCitationSchema(Schema):
    """A quote of a receipt, and where it stands now."""

    n: int
    state: QuoteState
    document_id: str
    title: str
    uri: str
    quote: str
    start: int
    end: int


class ReceiptReportSchema(Schema):
    """The parts of an answer that still hold."""

    question: str
    moment: str
    holds: bool
    intact: bool
    tampering: list[str]
    differences: list[str]
    sentences: list[CheckedSentenceSchema]
    citations: list[CheckedCitationSchema]
    unanswered: list[str]
    answered: bool


class AnsweredReceiptSchema(Schema):
    """An answer and its receipt."""

    answer: AnswerSchema
    receipt: ReceiptSchema
