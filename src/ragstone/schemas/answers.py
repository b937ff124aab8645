"""Answers, whole and event by event while they are made, and verdicts on claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, Self

from ragstone.core.answers import (
    AnswerEvent,
    AnswerReady,
    AnswerStatus,
    CitationsReady,
    ClaimOutcome,
    Confidence,
    Outcome,
    Stance,
    Status,
    Support,
)
from ragstone.core.types import Json
from ragstone.schemas.schema import Schema


class SentenceSchema(Schema):
    """A sentence of an answer with the numbers of its citations."""

    text: str
    support: Support
    citations: list[int]


class CitationSchema(Schema):
    """A quote and where it stands."""

    n: int
    quote: str
    document_id: str
    title: str
    uri: str
    page: int | None
    section: str
    start: int
    end: int
    chunk_id: str
    site: str


class ContradictionSchema(Schema):
    """A passage that says otherwise than a sentence of the answer."""

    sentence: str
    quote: str
    reason: str
    chunk_id: str
    document_id: str
    title: str
    uri: str
    page: int | None
    section: str
    start: int
    end: int


class AnswerSchema(Schema):
    """An answer; `unanswered` lists the parts of the question that were left open.

    With the outcome `nearest` the quotes in `nearest` come near the question and are no answer to it.
    """

    question: str
    answer: str
    sentences: list[SentenceSchema]
    citations: list[CitationSchema]
    status: AnswerStatus
    degraded: list[str]
    contradictions: list[ContradictionSchema]
    unanswered: list[str]
    outcome: Outcome
    nearest: list[SentenceSchema]
    missing: list[str]
    waiting: int


class SentenceEventSchema(Schema):
    """A sentence of a stream; `marked` is the text with its citation marks."""

    event: Literal["sentence"] = "sentence"
    text: str
    support: Support
    citations: list[int]
    marked: str


class CitationsEventSchema(Schema):
    """The citations of a stream."""

    event: Literal["citations"] = "citations"
    citations: list[CitationSchema]


class LastEventSchema(Schema):
    """The first fields of the last event of a stream."""

    event: Literal["answer"] = "answer"


class AnswerEventSchema(AnswerSchema, LastEventSchema):
    """The whole answer, which ends a stream."""


def event_schema(event: AnswerEvent) -> SentenceEventSchema | CitationsEventSchema | AnswerEventSchema:
    """Return the shape of one event of a stream."""
    if isinstance(event, AnswerReady):
        return AnswerEventSchema.of(event.answer, event="answer")
    if isinstance(event, CitationsReady):
        return CitationsEventSchema.of(event, event="citations")
    return SentenceEventSchema.of(event.sentence, event="sentence", marked=event.text)


class EvidenceSchema(Schema):
    """A sentence, what it means for the claim, and where it stands."""

    text: str
    source: str
    relevance: float
    stance: Stance
    support: float
    refutation: float
    failed: list[str]
    document_id: str
    chunk_id: str
    title: str
    uri: str
    page: int | None
    section: str
    start: int
    end: int


class ClaimPartSchema(Schema):
    """One statement of a compound claim."""

    text: str
    status: Status
    stance: Stance
    support: float


class _VerdictPlaceSchema(Schema):
    """The place of a sentence in the text that was checked, and the outcome in one word."""

    start: int
    end: int
    line: int
    page: int | None
    outcome: ClaimOutcome


class VerdictSchema(Schema):
    """A verdict with up to three pieces of evidence."""

    claim: str
    status: Status
    confidence: Confidence
    stance: Stance
    evidence: list[EvidenceSchema]
    support: float
    sources: int
    parts: list[ClaimPartSchema]
    checker: str
    degraded: list[str]


class CheckedClaimSchema(VerdictSchema, _VerdictPlaceSchema):
    """The verdict on a sentence of a text, and where that stands in it."""

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a checked sentence."""
        place = {name: getattr(source, name) for name in _VerdictPlaceSchema.model_fields}
        return super().of(source.verdict, **place, **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a checked sentence, with its verdict in one place."""
        return {**data, "verdict": data}


class CheckedTextSchema(Schema):
    """The verdicts on the sentences of a text, counted in `statuses` and `outcomes`.

    `skipped` counts sentences that state nothing, `unchecked` those that do and were left.
    """

    claims: list[CheckedClaimSchema]
    statuses: dict[Status, int]
    outcomes: dict[ClaimOutcome, int]
    skipped: int
    unchecked: int

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a checked text."""
        return super().of(source, statuses=Counter(claim.verdict.status for claim in source.claims), **values)
