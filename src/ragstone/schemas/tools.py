"""Answers of the agents' tools, under the names that agents were written for."""

from __future__ import annotations

from pydantic import RootModel

from ragstone.core.answers import ClaimOutcome, Confidence, Stance, Status
from ragstone.core.types import Json
from ragstone.schemas.schema import Schema


class PassageSchema(Schema):
    """A passage and the document that it is part of; `date` and `url` are what the document says."""

    text: str
    source: str
    date: Json
    url: Json
    relevance: float
    parent_doc_id: str


class KnowledgeSchema(Schema, RootModel[list[PassageSchema]]):
    """The answer of `search_knowledge` and of the tools that find examples."""


class MessagePassageSchema(Schema):
    """A passage under the names that it has in a tool message."""

    chunk_text: str
    source: str
    date: Json
    relevance_score: float
    parent_doc_id: str
    url: Json


class ToolMessageSchema(Schema, RootModel[list[MessagePassageSchema]]):
    """The result of `search_knowledge` as an agent reads it."""


class DocsPassageSchema(Schema):
    """A passage of the documentation; its relevance is a percentage such as `75%`."""

    content: str
    source: str
    section: str
    relevance: str


class DocsSchema(Schema):
    """The answer of `searchDocs`."""

    results: list[DocsPassageSchema]


class ClaimEvidenceSchema(Schema):
    """A sentence about a claim; `failed` says in what it differs from it, such as a number."""

    text: str
    source: str
    relevance: float
    stance: Stance
    failed: list[str]


class ClaimSchema(Schema):
    """The answer of `verify_claim`: the stance says what silence would hide."""

    status: Status
    confidence: Confidence
    stance: Stance
    evidence: list[ClaimEvidenceSchema]


class TextClaimSchema(Schema):
    """A sentence of a text that was checked, and the best evidence about it."""

    claim: str
    line: int
    outcome: ClaimOutcome
    status: Status
    evidence: list[ClaimEvidenceSchema]


class TextCheckSchema(Schema):
    """The answer of `check_text`: `unchecked` counts sentences that were left."""

    outcomes: dict[ClaimOutcome, int]
    claims: list[TextClaimSchema]
    unchecked: int
