"""Replies of the customer-service agent, and the events that they come as."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from ragstone.core.answers import Citation, Contradiction, Sentence, SentenceReady
from ragstone.core.search import QueryType, SourceKind

Intent = Literal[
    "small talk", "availability", "services", "products", "price", "recommendation", "overview", "question"
]
ReplyStatus = Literal["answered", "declined", "handed_over", "small_talk"]


@dataclass(frozen=True, slots=True)
class ProductEnrichment:
    """Facts about a product from web pages."""

    key_features: tuple[str, ...] = ()
    specifications: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = ()
    target_audience: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


NO_DETAILS = ProductEnrichment()


@dataclass(frozen=True, slots=True)
class CustomerReply:
    """A reply to a customer, the sources of each sentence, and what is to be known about how it was made."""

    message: str
    conversation: str
    reply: str
    status: ReplyStatus
    type: QueryType
    intent: Intent
    sentences: tuple[Sentence, ...] = ()
    citations: tuple[Citation, ...] = ()
    sources: tuple[SourceKind, ...] = ()
    """The sources that the reply stands on, named in it or not."""
    conflicts: tuple[Contradiction, ...] = ()
    """Passages that say otherwise than the shop's own data."""
    enrichment: ProductEnrichment = NO_DETAILS
    degraded: tuple[str, ...] = ()
    retrieval_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class ReplyReady:
    """The whole reply: the last event."""

    reply: CustomerReply


ReplyEvent = SentenceReady | ReplyReady
