"""Verdicts on claims."""

from __future__ import annotations

from ragstone.core.answers import Confidence, Stance, Status
from ragstone.schemas.schema import Schema


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
