"""The outcome of checking a claim, and the sentences it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["VERIFIED", "LIKELY", "UNVERIFIED"]
Confidence = Literal["high", "medium", "low"]
Stance = Literal["supported", "refuted", "mixed", "unknown"]

CONFIDENCE: dict[Status, Confidence] = {"VERIFIED": "high", "LIKELY": "medium", "UNVERIFIED": "low"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that bears on a claim, and exactly where it stands: `document.text[start:end] == text`."""

    text: str
    source: str
    """What the document calls its origin, or its address where it says none."""
    relevance: float
    """Score of the search that found its passage."""
    stance: Stance
    support: float
    """How sure the checker is that it says the claim, from 0 to 1."""
    refutation: float
    """How sure the checker is that it says the opposite, from 0 to 1."""
    failed: tuple[str, ...]
    """What the explicit checks found against it."""
    document_id: str
    chunk_id: str
    title: str
    uri: str
    page: int | None
    section: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ClaimPart:
    """One of the statements that a compound claim makes, with a verdict of its own."""

    text: str
    status: Status
    stance: Stance
    support: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the knowledge base says about a claim; a compound claim is as good as its weakest part."""

    claim: str
    status: Status
    stance: Stance
    support: float
    evidence: tuple[Evidence, ...]
    parts: tuple[ClaimPart, ...]
    sources: int
    """How many independent sources support it: copies of one text count once."""
    checker: str
    """What judged the sentences: `checks`, or the name of the entailment model or LLM."""
    degraded: tuple[str, ...] = ()

    @property
    def confidence(self) -> Confidence:
        return CONFIDENCE[self.status]
