"""Votes, logged searches, golden queries, gaps and conversations."""

from __future__ import annotations

from pydantic import Field

from ragstone.core.activity import Origin, Vote
from ragstone.core.search import SourceKind
from ragstone.core.types import Mode
from ragstone.schemas.schema import Moment, Schema


class VoteSchema(Schema):
    """A vote on a passage."""

    moment: Moment
    kb: str
    query: str
    chunk_id: str
    document_id: str
    vote: Vote
    voter: str


class VoteListSchema(Schema):
    """Votes, newest first."""

    feedback: list[VoteSchema]


class NotedVotesSchema(Schema):
    """The number of passages that were voted on."""

    noted: int
    vote: Vote


class LoggedSearchSchema(Schema):
    """A search that was made; `relevance` is what votes and golden queries say of it.

    Three facts have two names, one of them from the time before there were other sources than documents:
    `latency_ms` and `retrieval_time_ms`, `num_results` and `document_results_count`, `moment` and `created_at`.
    """

    moment: Moment
    kb: str
    query: str
    mode: Mode
    latency_ms: float
    num_results: int
    top_score: float
    relevance: float | None
    similarity: float | None
    coverage: float
    created_at: Moment
    tenant_id: str
    conversation: str
    query_type: str
    sources_queried: list[SourceKind]
    sources_returned: list[SourceKind]
    document_results_count: int
    database_results_count: int
    internet_results_count: int
    total_results: int
    retrieval_time_ms: float
    embedding_time_ms: float
    success: bool
    error_message: str


class LoggedSearchesSchema(Schema):
    """Searches, newest first."""

    searches: list[LoggedSearchSchema]


class SearchReportSchema(Schema):
    """Figures of the searches of some days, under the names that dashboards know."""

    searches: int
    judged: int
    latency_p50: float | None
    latency_p95: float | None
    latency_p99: float | None
    avg_relevance: float | None
    recall_at_10: float | None = Field(alias="recall@10")
    precision_at_5: float | None = Field(alias="precision@5")


class LearntTermsSchema(Schema):
    """Words of queries with their names in the documents, and the file that they were written to."""

    terms: dict[str, list[str]]
    written: str | None


class GoldenQuerySchema(Schema):
    """A question that is kept with the documents that answer it."""

    kb: str
    query: str
    document_ids: list[str]
    origin: Origin


class GoldenQueriesSchema(Schema):
    """The golden queries of a kb."""

    golden: list[GoldenQuerySchema]


class MadeGoldenSchema(Schema):
    """Golden queries that were made; `degraded` says why an LLM had no part in some."""

    golden: list[GoldenQuerySchema]
    degraded: list[str]


class AddedGoldenSchema(Schema):
    """A golden query that was added."""

    added: str


class RemovedSchema(Schema):
    """The number that was removed."""

    removed: int


class GapSchema(Schema):
    """Questions about one thing that were asked and not answered."""

    queries: list[str]
    times: int
    last: Moment
    reason: str
    missing: list[str]


class GapListSchema(Schema):
    """Gaps, the most frequent first."""

    gaps: list[GapSchema]


class ConversationSchema(Schema):
    """The size and the times of a conversation."""

    name: str
    kb: str
    turns: int
    began: Moment
    last: Moment


class ConversationListSchema(Schema):
    """The conversations of a tenant."""

    conversations: list[ConversationSchema]


class TurnSchema(Schema):
    """A question of a conversation with its answer."""

    moment: Moment
    question: str
    answer: str
    document_ids: list[str]


class TurnListSchema(Schema):
    """The turns of a conversation, oldest first."""

    conversation: str
    turns: list[TurnSchema]


class ForgottenConversationSchema(Schema):
    """A conversation that was removed, and how many turns it had."""

    forgotten: str
    turns: int
