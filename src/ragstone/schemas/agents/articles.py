"""Runs of the article pipeline and the articles that come out of them."""

from __future__ import annotations

from ragstone.core.agents.articles import ArticleStatus, Ballot, GraphName, RunStatus, Treatment
from ragstone.core.answers import ClaimOutcome
from ragstone.schemas.answers import CitationSchema
from ragstone.schemas.schema import Moment, Schema


class ArticleClaimSchema(Schema):
    """A sentence that was checked, what the sources make of it, and what became of it."""

    text: str
    start: int
    end: int
    outcome: ClaimOutcome
    checked_by: list[str]
    evidence: str
    source: str
    treatment: Treatment
    citation: int | None


class PanelVoteSchema(Schema):
    """The vote of one member of the panel."""

    member: str
    vote: Ballot
    reason: str


class NodeStepSchema(Schema):
    """Time and cost of one turn of a node."""

    node: str
    seconds: float
    tokens_read: int
    tokens_written: int
    usd: float


class KnowledgeQuerySchema(Schema):
    """A call of a tool by an agent."""

    node: str
    tool: str
    query: str
    reused: bool
    error: str


class ArticleSchema(Schema):
    """An article in Markdown, with its citations, its claims and how it was made."""

    topic: str
    status: ArticleStatus
    markdown: str
    citations: list[CitationSchema]
    claims: list[ArticleClaimSchema]
    cited: int
    votes: list[PanelVoteSchema]
    rounds: int
    queries: list[KnowledgeQuerySchema]
    steps: list[NodeStepSchema]
    degraded: list[str]


class ArticleRunSchema(Schema):
    """A run of the pipeline; `article` is null until it has completed."""

    id: str
    kb: str
    graph: GraphName
    topic: str
    status: RunStatus
    error: str
    created_at: Moment
    updated_at: Moment
    article: ArticleSchema | None


class ArticleRunListSchema(Schema):
    """Runs, newest first, without their articles."""

    runs: list[ArticleRunSchema]
