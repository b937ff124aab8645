"""Articles that agents write: runs of the pipeline, and what comes out of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ragstone.core.answers import Citation, ClaimOutcome

GraphName = Literal["full", "writer"]
"""The whole pipeline, or only research, writer and editor."""
RunStatus = Literal["running", "completed", "failed"]
"""A run whose process has ended stays `running` until it is resumed."""
Treatment = Literal["kept", "corrected", "removed"]
"""Said as it was written; said as the source has it; not said."""
Ballot = Literal["accept", "reject", "abstain"]
ArticleStatus = Literal["accepted", "rejected", "unverified"]
"""The vote of the panel; `unverified` for the reduced graph, which checks nothing."""


@dataclass(frozen=True, slots=True)
class ArticleClaim:
    """A sentence of the text before it was settled (`text[start:end]`), and what the sources make of it."""

    text: str
    start: int
    end: int
    outcome: ClaimOutcome
    checked_by: tuple[str, ...]
    """`knowledge_base`, `web`, or both."""
    evidence: str
    """The sentence that decides, or that comes nearest; empty where there is none."""
    source: str
    treatment: Treatment
    citation: int | None
    """The number of the citation that it stands on."""


@dataclass(frozen=True, slots=True)
class PanelVote:
    """The vote of one member of the panel."""

    member: str
    vote: Ballot
    reason: str


@dataclass(frozen=True, slots=True)
class NodeStep:
    """One turn of a node: the time it took, and what its models read, wrote and cost."""

    node: str
    seconds: float
    tokens_read: int
    tokens_written: int
    usd: float


@dataclass(frozen=True, slots=True)
class KnowledgeQuery:
    """A call of a tool by an agent."""

    node: str
    tool: str
    query: str
    reused: bool
    """Answered with what an earlier call had found."""
    error: str


@dataclass(frozen=True, slots=True)
class WrittenArticle:
    """A finished article: its text in Markdown, the citations it stands on, and how it was made."""

    topic: str
    status: ArticleStatus
    markdown: str
    citations: tuple[Citation, ...]
    claims: tuple[ArticleClaim, ...]
    votes: tuple[PanelVote, ...]
    rounds: int
    """The number of times that the text went back to the editor with claims that did not hold."""
    queries: tuple[KnowledgeQuery, ...]
    steps: tuple[NodeStep, ...]
    degraded: tuple[str, ...] = ()

    @property
    def cited(self) -> int:
        """Return the number of claims that are said and cited."""
        return sum(claim.citation is not None for claim in self.claims)


@dataclass(frozen=True, slots=True)
class ArticleRun:
    """A run of the pipeline, with its article once it has completed."""

    id: str
    kb: str
    graph: GraphName
    topic: str
    status: RunStatus
    error: str
    created_at: datetime
    updated_at: datetime
    article: WrittenArticle | None = None
