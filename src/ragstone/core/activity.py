"""Records of searches, votes and conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ragstone.core.search import SearchResult, SourceKind
from ragstone.core.types import Mode

Vote = Literal["up", "down", "used"]
"""`used` is what somebody did with a passage, the others are what somebody said of it."""
Origin = Literal["llm", "extractive", "manual"]
SHOWN = 10
"""The number of passages of a search that are remembered: as many as recall@10 looks at."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage that a search brought, at its rank from 1 on."""

    rank: int
    chunk_id: str
    document_id: str
    score: float


@dataclass(frozen=True, slots=True)
class LoggedSearch:
    """One search as it is remembered."""

    moment: datetime
    kb: str
    query: str
    mode: Mode
    latency_ms: float
    num_results: int
    top_score: float
    """0 when nothing was found."""
    similarity: float | None
    """The best cosine among the passages; None when none was found by meaning."""
    coverage: float
    """Share of the query's words that are in the first passages, from 0 to 1."""
    missing: tuple[str, ...] = ()
    """Those words that are not, as they were typed."""
    shown: tuple[Shown, ...] = ()
    tenant_id: str = ""
    conversation: str = ""
    """The name of the conversation that it belongs to; empty when it stands alone."""
    query_type: str = ""
    """The kind that the query was taken for; empty where nothing depended on that."""
    sources_queried: tuple[SourceKind, ...] = ()
    sources_returned: tuple[SourceKind, ...] = ()
    database_results_count: int = 0
    internet_results_count: int = 0
    embedding_time_ms: float = 0.0
    success: bool = True
    error_message: str = ""

    @property
    def document_results_count(self) -> int:
        """Passages of the kb."""
        return self.num_results

    @property
    def total_results(self) -> int:
        """Return the number of hits of all sources."""
        return self.num_results + self.database_results_count + self.internet_results_count

    @property
    def retrieval_time_ms(self) -> float:
        """From the question to the passages."""
        return self.latency_ms


@dataclass(frozen=True, slots=True)
class SearchFacts:
    """The figures of a logged search, without what was asked or found."""

    moment: datetime
    mode: Mode
    ms: float
    results: int
    """Of all sources together."""
    asked: tuple[SourceKind, ...]
    helpful: tuple[SourceKind, ...]
    """The sources that had results."""
    embedding_ms: float
    success: bool
    problem: str
    """The error of one that failed, or what was degraded."""


@dataclass(frozen=True, slots=True)
class PassageVote:
    """The vote of one voter on one passage for one query. A later vote replaces an earlier one."""

    moment: datetime
    kb: str
    query: str
    chunk_id: str
    document_id: str
    vote: Vote
    voter: str = ""


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A question that is kept with the documents that answer it."""

    kb: str
    query: str
    document_ids: tuple[str, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class SearchReport:
    """Quality of search over a period; None where there are no searches or no votes."""

    searches: int
    judged: int
    """Searches for a query that somebody has judged passages of."""
    latency_p50: float | None
    latency_p95: float | None
    latency_p99: float | None
    avg_relevance: float | None
    recall_at_10: float | None
    precision_at_5: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Questions about one thing that the kb did not answer."""

    queries: tuple[str, ...]
    """In the words of those who asked, most frequent first."""
    times: int
    last: datetime
    reason: str
    missing: tuple[str, ...]
    """Words of the questions that none of the passages had."""


def same_query(query: str) -> str:
    """Return the query without differences of case and white space."""
    return " ".join(query.casefold().split())


def net_grades(votes: Sequence[PassageVote]) -> dict[str, dict[str, int]]:
    """Return grades by query and document: 1 where more said yes than no, 0 where it is judged and not so."""
    said: dict[str, dict[str, int]] = {}
    for vote in votes:
        judged = said.setdefault(same_query(vote.query), {})
        judged[vote.document_id] = judged.get(vote.document_id, 0) + (-1 if vote.vote == "down" else 1)
    return {query: {document: int(net > 0) for document, net in judged.items()} for query, judged in said.items()}


@dataclass(frozen=True, slots=True)
class Note:
    """A search that is to be remembered; what takes time to find out about it is left for later."""

    tenant: str
    tenant_id: str
    kb: str
    moment: datetime
    result: SearchResult
    conversation: str = ""
    error: str = ""
    """Why it failed; the result is then empty."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Facts about a stored conversation."""

    name: str
    kb: str
    turns: int
    began: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """A question within a conversation, and what was answered."""

    moment: datetime
    kb: str
    conversation: str
    question: str
    answer: str = ""
    """Empty for a search, where nothing was found, and once a document that it was made from is gone or replaced."""
    document_ids: tuple[str, ...] = ()
    """The documents whose passages it was made from."""
