"""Receipts of answers that were checked again."""

from __future__ import annotations

from ragstone.core.answers import QuoteState
from ragstone.schemas.schema import Schema


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
