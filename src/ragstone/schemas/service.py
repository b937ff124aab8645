"""The customer-service agent: its configuration, and its replies whole and sentence by sentence."""

from __future__ import annotations

from typing import Literal

from ragstone.core.answers import Support
from ragstone.core.search import QueryType, SourceKind
from ragstone.schemas.answers import CitationSchema, ContradictionSchema, SentenceSchema
from ragstone.schemas.documents import IngestSchema
from ragstone.schemas.schema import Schema


class EnrichmentSchema(Schema):
    """Facts about a product from web pages."""

    key_features: list[str]
    specifications: list[str]
    use_cases: list[str]
    target_audience: list[str]


class ChatReplySchema(Schema):
    """A reply to a customer; `sources` says what it stands on, whether or not its text names them.

    With the status `declined` or `handed_over` a person has to go on.
    """

    message: str
    conversation: str
    reply: str
    status: Literal["answered", "declined", "handed_over", "small_talk"]
    type: QueryType
    intent: str
    sentences: list[SentenceSchema]
    citations: list[CitationSchema]
    sources: list[SourceKind]
    conflicts: list[ContradictionSchema]
    enrichment: EnrichmentSchema
    degraded: list[str]
    retrieval_ms: float


class ChatSentenceEventSchema(Schema):
    """A sentence of a streamed reply; `marked` is the text with its citation marks."""

    event: Literal["sentence"] = "sentence"
    text: str
    support: Support
    citations: list[int]
    marked: str


class _ReplyEventSchema(Schema):
    """The first field of the last event of a stream."""

    event: Literal["reply"] = "reply"


class ChatReplyEventSchema(ChatReplySchema, _ReplyEventSchema):
    """The whole reply, which ends a stream."""


class ShopDemoSchema(Schema):
    """The demo shop: its documents, and its conversations by the configuration of the agent."""

    ingest: IngestSchema
    conversations: dict[str, list[ChatReplySchema]]


class AgentConfigurationSchema(Schema):
    """The configuration of the customer-service agent."""

    enable_document_retrieval: bool
    enable_database_retrieval: bool
    enable_internet_enrichment: bool
    enable_source_attribution: bool
    max_document_results: int
    max_database_results: int
    max_internet_results: int
    semantic_search_weight: float
    keyword_search_weight: float
    embedding_model: str
    agent_can_do: str
    agent_cannot_do: str
    citation_style: Literal["inline", "footnote", "endnote"]
    history_turns: int
    handover_message: str
